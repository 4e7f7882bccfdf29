// Names: the search, and shorter and shorter ways to write one.

// Searches for a regular expression, ignoring case unless the expression has a capital letter.
// Throws if the expression is invalid.
function searchFrames(recording, text) {
  const regex = new RegExp(text, /[A-Z]/.test(text.replace(/\\./g, "")) ? "" : "i");
  const matches = new Uint8Array(recording.frameCount);
  let count = 0;
  for (let i = 0; i < recording.frameCount; i++) {
    if (!regex.test(recording.names[i])) continue;
    matches[i] = 1;
    count++;
  }
  return {matches, count, regex};
}

// Where the method's own name starts: after the last dot that is outside of <>, [] and ().
function methodStart(name) {
  let nesting = 0;
  for (let i = name.length - 1; i > 0; i--) {
    const c = name[i];
    if (c === ">" || c === "]" || c === ")") nesting++;
    else if (c === "<" || c === "[" || c === "(") nesting--;
    else if (c === "." && nesting <= 0) return name[i - 1] === "." ? i : i + 1;
  }
  return 0;
}

// Like methodStart, but an accessor or a lambda, whose name means nothing alone, keeps its owner's.
function ownStart(name) {
  const start = methodStart(name);
  const dependent = /^(get|set|init|add|remove|Invoke|lambda#\d+)\b/.test(name.slice(start));
  return start > 0 && dependent ? methodStart(name.slice(0, start - 1)) : start;
}

// Shorter and shorter ways to write a name: without namespaces, then the method alone, unless that
// says nothing (constructors, MoveNext); a library without "lib" and ".so".
function shortNames(name) {
  const library = /^\[(?:lib)?(.*)\.so[.\d]*\]$/.exec(name);
  if (library) return [name, `[${library[1]}]`];
  const line = / \([^()]*:\d+\)(?: \(inlined\))?$| \(inlined\)$/.exec(name)?.[0] ?? "";
  if (line) return shortNames(name.slice(0, -line.length)).map(form => form + line);
  const word = /^(?:new|static) /.exec(name)?.[0] ?? "";  // constructors
  if (word) return shortNames(name.slice(word.length)).map(form => word + form);
  const clone = /(?:\.(?:part|cold|constprop|isra|lto_priv|llvm|localalias)(?:\.\d+)?)+(?= \[k\]$|$)/.exec(name);
  if (clone) return [name, name.replace(clone[0], "")];  // a native function of which the compiler made several
  const start = ownStart(name);
  if (start === 0) return [name];
  const method = name.slice(start), type = name.slice(0, start).replace(/\.$/, "");
  const bare = type.slice(methodStart(type)).replace(/(?:\w+\.)+(?=\w)/g, "");
  const plain = method.replace(/([<,[( ])(?:\w+\.)+(?=\w)/g, "$1");  // without the namespaces in its brackets
  const medium = `${bare}.${plain}`;
  const machine = /<([^<>]+)>d__\d+$/.exec(bare);  // of an async method or an iterator
  if (machine && plain === "MoveNext") return [name, medium, machine[1]];
  return /^(\.c?ctor|MoveNext)$/.test(plain) ? [name, medium] : [name, medium, plain];
}
