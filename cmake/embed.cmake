# embed.cmake - text files as C strings: embed(TARGET SYMBOL FILE) adds `const char SYMBOL[]` to a target.
function(embed target symbol file)
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  set(out ${CMAKE_BINARY_DIR}/embedded/${symbol}.c)
  file(CONFIGURE OUTPUT ${out} @ONLY CONTENT
    "/* ${file}, built in. */\nextern const char ${symbol}[];\nconst char ${symbol}[] = {${bytes}0};\n")
  target_sources(${target} PRIVATE ${out})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${file})
endfunction()
