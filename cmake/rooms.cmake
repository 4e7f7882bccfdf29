# src/ has four buildings and the wire between the last two. A folder of a building is a room. A building can include
# the headers of the buildings that are listed for it here, as "room/header.h"; within these, tests/check_layers.py
# enforces the dependencies between the rooms. What a room does differently on each architecture is in its building's
# arch/ARCHITECTURE/room; only the folder of the architecture that is built for is seen.
string(REGEX REPLACE "^(amd64|AMD64)$" "x86_64" CLRSNAP_ARCH "${CMAKE_SYSTEM_PROCESSOR}")
if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/src/core/arch/${CLRSNAP_ARCH})
  message(FATAL_ERROR "clrsnap does not run on ${CMAKE_SYSTEM_PROCESSOR}: there is no src/core/arch/${CLRSNAP_ARCH}.")
endif()
set(ROOMS_core base mem pe contract clr images native codemap unwind walk)
set(ROOMS_library signal threads life snapshot dropin)
set(ROOMS_agent state engines sampling events reporting agent clr_names)
set(ROOMS_command util net metadata symbols demangle remote objects process recording naming session profile formats page push stack async top guest)

set(SEES_core core core/arch/${CLRSNAP_ARCH})
set(SEES_wire ${SEES_core} .)
set(SEES_library ${SEES_core} library library/arch/${CLRSNAP_ARCH})
set(SEES_agent ${SEES_library} agent agent/arch/${CLRSNAP_ARCH} .) # . for wire/
set(SEES_command ${SEES_core} command command/arch/${CLRSNAP_ARCH} .)
set(SEES_all ${SEES_library} agent agent/arch/${CLRSNAP_ARCH} command command/arch/${CLRSNAP_ARCH} .)

# The signal-safe island: the code that a handler may run. It is one archive, whose undefined symbols are checked.
set(ISLAND_ROOMS mem images codemap unwind walk signal)

# clrsnap_sees(TARGET BUILDING): adds the include paths of the headers that a building can include.
function(clrsnap_sees target building)
  list(TRANSFORM SEES_${building} PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE folders)
  target_include_directories(${target} PRIVATE ${folders} ${PROJECT_SOURCE_DIR}/include)
endfunction()

# clrsnap_rooms(BUILDING): adds an object library cs_ROOM for each room outside of the island.
function(clrsnap_rooms building)
  foreach(room ${ROOMS_${building}})
    if(NOT room IN_LIST ISLAND_ROOMS)
      file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${building}/${room}/*.[cS]
        ${PROJECT_SOURCE_DIR}/src/${building}/arch/${CLRSNAP_ARCH}/${room}/*.[cS])
      add_library(cs_${room} OBJECT ${sources})
      clrsnap_sees(cs_${room} ${building})
    endif()
  endforeach()
endfunction()

# clrsnap_island(BUILDING...): adds the island, which has rooms of several buildings. No stack protector (it reads TLS), no
# calls that the compiler invents, no sanitizer in a handler.
function(clrsnap_island)
  set(island_sources)
  foreach(building ${ARGN})
    foreach(room ${ISLAND_ROOMS})
      file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${building}/${room}/*.c
        ${PROJECT_SOURCE_DIR}/src/${building}/arch/${CLRSNAP_ARCH}/${room}/*.c)
      list(APPEND island_sources ${sources})
    endforeach()
  endforeach()
  add_library(cs_island STATIC ${island_sources})
  clrsnap_sees(cs_island library)
  target_compile_options(cs_island PRIVATE -fno-stack-protector -fno-tree-loop-distribute-patterns -fno-sanitize=all -O2)
  if(CLRSNAP_ARCH STREQUAL "x86_64")
    target_compile_options(cs_island PRIVATE -minline-all-stringops)
  elseif(CLRSNAP_ARCH STREQUAL "aarch64")
    target_compile_options(cs_island PRIVATE -mno-outline-atomics) # calls of libgcc
  endif()
endfunction()
