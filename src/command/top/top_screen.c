// SPDX-License-Identifier: MIT
// The terminal of `clrsnap top`: draws a grid, takes keys. Invariant: whatever ends the command,
// SIGKILL excepted, the terminal is restored: by cs_screen_close, by exit, or by the handler of a
// fatal signal, which only writes bytes that were prepared beforehand. One thread. Signal-safe:
// nothing but on_fatal.
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "top/top.h"

#define CTRL_C 3
#define CTRL_Z 26
#define ESCAPE 27
#define DELETE 127

static SCREEN *screen;
static FILE *screen_in, *screen_out;
static int out_fd = -1;
static struct termios before;
static char leave[128];  // what gives the terminal back
static size_t leave_len;
static unsigned room;  // rows of the table that was drawn last

static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

static void on_fatal(int number) {
  (void)tcsetattr(out_fd, TCSANOW, &before);
  ssize_t written = write(out_fd, leave, leave_len);
  (void)written;
  (void)signal(number, SIG_DFL);
  (void)raise(number);
}

// Padding ("$<5>") is for printing terminals; leave it out.
static void add_leave(const char *name) {
  const char *text = tigetstr(name);
  if (text == NULL || text == (char *)-1) return;
  for (; *text != '\0' && leave_len + 1 < sizeof leave; text++) {
    if (text[0] == '$' && text[1] == '<' && strchr(text, '>') != NULL)
      text = strchr(text, '>');
    else
      leave[leave_len++] = *text;
  }
}

static void guard_terminal(void) {
  leave_len = 0;
  add_leave("sgr0");
  add_leave("cnorm");
  add_leave("rmcup");
  struct sigaction action = {.sa_handler = on_fatal};
  for (size_t i = 0; i < CS_COUNT(fatal); i++) (void)sigaction(fatal[i], &action, NULL);
  static bool registered;
  if (!registered) (void)atexit(cs_screen_close);
  registered = true;
}

bool cs_screen_open(int fd_in, int fd_out, struct cs_error *err) {
  const char *term = getenv("TERM");
  (void)setlocale(LC_CTYPE, "");
  out_fd = fd_out;
  if (tcgetattr(fd_out, &before) != 0) return cs_error_set(err, "no terminal: %m");
  screen_in = fdopen(fd_in, "r");
  screen_out = fdopen(fd_out, "w");
  if (screen_in == NULL || screen_out == NULL) return cs_error_set(err, "no terminal: %m");
  set_escdelay(50);  // a lone Escape is one soon
  screen = newterm(NULL, screen_out, screen_in);
  if (screen == NULL)
    return cs_error_set(err,
                        "the terminal '%s' (TERM) is not known here; --text prints tables instead",
                        term != NULL ? term : "");
  guard_terminal();
  (void)raw();  // Ctrl-C and Ctrl-Z are keys: the program, of the same group, is to get no signal
  (void)noecho();
  (void)nonl();
  (void)keypad(stdscr, TRUE);
  (void)nodelay(stdscr, TRUE);
  (void)curs_set(0);
  return true;
}

void cs_screen_close(void) {
  if (screen == NULL) return;
  (void)endwin();
  delscreen(screen);
  screen = NULL;
  for (size_t i = 0; i < CS_COUNT(fatal); i++) (void)signal(fatal[i], SIG_DFL);
  (void)fclose(screen_in);
  (void)fclose(screen_out);
}

void cs_screen_resize(void) {
  struct winsize size;
  if (screen == NULL || ioctl(out_fd, TIOCGWINSZ, &size) != 0) return;
  if (size.ws_row > 0 && size.ws_col > 0) (void)resizeterm(size.ws_row, size.ws_col);
}

void cs_screen_suspend(void) {
  if (screen == NULL) return;
  (void)endwin();
  (void)kill(getpid(), SIGSTOP);
  cs_screen_resize();
  (void)clearok(curscr, TRUE);
}

void cs_screen_draw(const struct cs_top_moment *moment) {
  static const attr_t attributes[] = {[CS_GRID_PLAIN] = A_NORMAL,
                                      [CS_GRID_BOLD] = A_BOLD,
                                      [CS_GRID_TITLE] = A_REVERSE,
                                      [CS_GRID_DIM] = A_DIM};
  struct cs_grid grid;
  cs_grid_init(&grid, (unsigned)LINES, (unsigned)COLS);
  cs_top_render(moment, &grid);
  room = grid.room;
  (void)erase();
  for (unsigned i = 0; i < grid.rows; i++) {
    if (grid.text[i] == NULL) continue;
    (void)attrset((int)attributes[grid.style[i]]);
    (void)mvaddstr((int)i, 0, grid.text[i]);
    if (grid.style[i] == CS_GRID_TITLE) (void)hline(' ' | A_REVERSE, COLS);
  }
  (void)attrset(A_NORMAL);
  (void)refresh();
  cs_grid_free(&grid);
}

// ---- Keys ----

static char typed[CS_TOP_FILTER];

static enum cs_top_key type(struct cs_top_moment *m, int key) {
  size_t len = strlen(typed);
  if (key == '\r' || key == '\n' || key == KEY_ENTER || key == ESCAPE) {
    if (key == ESCAPE) typed[0] = '\0';
    m->typing = NULL;
  } else if (key == KEY_BACKSPACE || key == DELETE || key == '\b') {
    while (len > 0 && ((unsigned char)typed[len - 1] & 0xC0) == 0x80) len--;
    if (len > 0) typed[len - 1] = '\0';
  } else if (key >= ' ' && key <= 0xFF && len + 1 < sizeof typed) {
    typed[len] = (char)key;
    typed[len + 1] = '\0';
  } else {
    return CS_TOP_NOTHING;
  }
  memcpy(m->view.filter, typed, sizeof typed);
  m->scroll = 0;
  return CS_TOP_REDRAW;
}

static void scroll_by(struct cs_top_moment *m, long by) {
  size_t rows = m->view.threads ? m->thread_count : m->method_count;
  long to = (long)m->scroll + by, last = rows > 0 ? (long)rows - 1 : 0;
  m->scroll = (size_t)(to < 0 ? 0 : to > last ? last : to);
}

static bool move_key(struct cs_top_moment *m, int key) {
  long page = (long)room;
  switch (key) {
    case KEY_UP:
      scroll_by(m, -1);
      return true;
    case KEY_DOWN:
      scroll_by(m, 1);
      return true;
    case KEY_PPAGE:
      scroll_by(m, -page);
      return true;
    case KEY_NPAGE:
      scroll_by(m, page);
      return true;
    case KEY_HOME:
      m->scroll = 0;
      return true;
    default:
      return false;
  }
}

static bool view_key(struct cs_top_moment *m, int key) {
  struct cs_top_view *view = &m->view;
  switch (key) {
    case '\t':
      view->threads = !view->threads;
      break;
    case 's':
      view->sort = CS_TOP_BY_SELF;
      break;
    case 't':
      view->sort = CS_TOP_BY_TOTAL;
      break;
    case 'n':
      view->sort = CS_TOP_BY_NAME;
      break;
    case 'N':
      view->native = !view->native;
      break;
    case 'w':
      view->whole = !view->whole;
      break;
    case '/':
      memcpy(typed, view->filter, sizeof typed);
      m->typing = typed;
      return true;
    default:
      return false;
  }
  m->scroll = 0;
  return true;
}

static enum cs_top_key press(struct cs_top_moment *m, int key) {
  if (key == CTRL_C) return CS_TOP_QUIT;
  if (key == CTRL_Z) {
    cs_screen_suspend();
    return CS_TOP_REDRAW;
  }
  if (m->typing != NULL) return type(m, key);
  if (m->help) {
    m->help = false;
    return key == 'q' ? CS_TOP_QUIT : CS_TOP_REDRAW;
  }
  if (key == 'q') return CS_TOP_QUIT;
  if (key == ' ') return CS_TOP_FREEZE;
  if (key == '?' || key == 'h') m->help = true;
  return m->help || key == KEY_RESIZE || view_key(m, key) || move_key(m, key) ? CS_TOP_REDRAW
                                                                              : CS_TOP_NOTHING;
}

enum cs_top_key cs_screen_keys(struct cs_top_moment *moment) {
  enum cs_top_key most = CS_TOP_NOTHING;
  for (int key; most < CS_TOP_FREEZE && (key = getch()) != ERR;) {
    enum cs_top_key asked = press(moment, key);
    if (asked > most) most = asked;
  }
  return most;
}
