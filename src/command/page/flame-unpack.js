// The data as the page carries it: base64 of zlib of columns of numbers, followed by JSON (see
// page_data.c). Numbers are read straight into typed arrays: parsing them as JSON would take longer
// than all the rest.

function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

// Returns {modes, marks, bytes}. A mode's columns are read from `bytes` when the mode is looked at.
async function unpack(base64) {
  const packed = new Blob([fromBase64(base64.trim())]);
  const stream = packed.stream().pipeThrough(new DecompressionStream("deflate"));
  const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  const text = (from, to) => new TextDecoder().decode(bytes.subarray(from, to));
  const place = Number(text(bytes.length - 10, bytes.length));
  return {...JSON.parse(text(place, bytes.length - 10)), bytes};
}

// Columns one after the other. A number has seven bits in each byte, the least significant first;
// every byte of it but the last has the eighth bit set.
class Columns {
  constructor(bytes, at) {
    this.bytes = bytes;
    this.at = at;
  }

  // Fills `into` from the index `first` on.
  read(into, first = 0) {
    const {bytes} = this;
    let {at} = this;
    for (let i = first; i < into.length; i++) {
      let value = bytes[at++];
      if (value >= 128) {
        let byte, scale = 128;
        value -= 128;
        do {
          byte = bytes[at++];
          value += (byte & 127) * scale;
          scale *= 128;
        } while (byte >= 128);
      }
      into[i] = value;
    }
    this.at = at;
    return into;
  }

  // Reads numbers that are stored as their distances from the previous one.
  readRising(into) {
    this.read(into);
    for (let i = 1; i < into.length; i++) into[i] += into[i - 1];
    return into;
  }
}
