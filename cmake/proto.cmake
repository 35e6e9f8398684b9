# tenon_proto_library(NAME PROTOS a.proto... [SERVICES a.proto...] [DEPS ...]): messages generated
# from proto/; for those of SERVICES, the stubs and services of gRPC, too. DEPS are libraries of
# this kind whose messages are imported.
# Generated code is not ours: it is compiled without warnings and included as a system header. It is
# a custom command and not protobuf_generate, whose output paths depend on where it is called.
function(tenon_proto_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "PROTOS;SERVICES;DEPS")
  set(root ${CMAKE_SOURCE_DIR}/proto)
  set(out ${CMAKE_BINARY_DIR}/gen)
  file(MAKE_DIRECTORY ${out})
  set(all_protos ${arg_PROTOS} ${arg_SERVICES})
  list(TRANSFORM all_protos PREPEND ${root}/)
  set(generated "")
  foreach(proto IN LISTS arg_PROTOS arg_SERVICES)
    string(REGEX REPLACE "\\.proto$" "" stem ${proto})
    set(files ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
    set(grpc "")
    if(proto IN_LIST arg_SERVICES)
      list(APPEND files ${out}/${stem}.grpc.pb.cc ${out}/${stem}.grpc.pb.h)
      set(grpc --grpc_out=${out} --plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>)
      list(APPEND generated ${out}/${stem}.grpc.pb.cc)
    endif()
    add_custom_command(
      OUTPUT ${files}
      COMMAND protobuf::protoc -I${root} --cpp_out=${out} ${grpc} ${proto}
      DEPENDS ${all_protos} protobuf::protoc  # all: they may import each other
      COMMENT "protoc ${proto}" VERBATIM)
    list(APPEND generated ${out}/${stem}.pb.cc)
  endforeach()
  add_library(${name} STATIC ${generated})
  target_compile_options(${name} PRIVATE -w)
  target_include_directories(${name} SYSTEM PUBLIC ${out})
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${arg_DEPS})
  if(arg_SERVICES)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
