# tenon_proto_library(NAME PROTOS tenon/v1/a.proto...): messages generated from proto/.
# Generated code is not ours: it is compiled without warnings and included as a system header. It is
# a custom command and not protobuf_generate, whose output paths depend on where it is called.
function(tenon_proto_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PROTOS")
  set(root ${CMAKE_SOURCE_DIR}/proto)
  set(out ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  set(all_protos ${arg_PROTOS})
  list(TRANSFORM all_protos PREPEND ${root}/)
  set(generated "")
  foreach(proto IN LISTS arg_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    add_custom_command(
      OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND protobuf::protoc -I${root} --cpp_out=${out} ${proto}
      DEPENDS ${all_protos} protobuf::protoc  # all: they may import each other
      COMMENT "protoc ${proto}" VERBATIM)
    list(APPEND generated ${out}/${stem}.pb.cc)
  endforeach()
  add_library(${name} STATIC ${generated})
  target_compile_options(${name} PRIVATE -w)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf)
endfunction()
