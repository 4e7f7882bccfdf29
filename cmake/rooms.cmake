# src/ has four buildings and the wire between the last two. A folder of a building is a room. A building can include
# the headers of the buildings that are listed for it here, as "room/header.h"; within these, tests/check_layers.py
# enforces the dependencies between the rooms.
set(ROOMS_core base mem pe contract clr images native codemap unwind walk)
set(ROOMS_library signal threads life snapshot dropin)
set(ROOMS_agent sampling events reporting agent clr_names)
set(ROOMS_command util net metadata symbols demangle remote objects process recording naming session profile formats page push stack async top guest)

set(SEES_core core)
set(SEES_wire core .)
set(SEES_library core library)
set(SEES_agent core library agent .) # . for wire/
set(SEES_command core command .)
set(SEES_all core library agent command .)

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
      file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${building}/${room}/*.[cS])
      add_library(cs_${room} OBJECT ${sources})
      clrsnap_sees(cs_${room} ${building})
    endif()
  endforeach()
endfunction()
