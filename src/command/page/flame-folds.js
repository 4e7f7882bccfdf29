// Folding: frames of the framework that lead to the program's code and say nothing about it are drawn
// as one box for each run of the same kind, until it is opened. Only the flame graph is folded:
// searches, sandwiches, the table and all sums are those of the frames themselves.

// The one table of what folds: token, label, and the names of the frames. Frames of the runtime's
// native code directly below the start of a thread or the host fold with it if they lead to managed
// code.
const FOLDS = [
  ["host", "host", new RegExp("^(?:_start|main|__libc_start_main|__libc_start_call_main|hostfxr_|corehost_|coreclr_" +
    "|Microsoft\\.(?:Extensions|AspNetCore)\\.Hosting\\.|Microsoft\\.AspNetCore\\.Builder\\.WebApplication\\.Run)")],
  ["start", "thread start", new RegExp("^(?:__clone|start_thread" +
    "|(?:static )?System\\.Threading\\.Thread(?:\\.Start|[.+]StartHelper))")],
  ["pool", "thread pool", new RegExp("^(?:static )?System\\.Threading\\.(?:ThreadPoolWorkQueue|ThreadPool\\.lambda" +
    "|PortableThreadPool|UnmanagedThreadPool|QueueUserWorkItem)" +
    "|\\.System\\.Threading\\.IThreadPoolWorkItem\\.Execute$")],
  ["kestrel", "Kestrel’s connection", new RegExp("^Microsoft\\.AspNetCore\\.Server\\.Kestrel\\.Core\\." +
    "(?:\\w+\\.)*(?:KestrelConnection(?:<.*>)?\\.|HttpConnection(?:Middleware(?:<.*>)?)?\\.|ConnectionDispatcher" +
    "|HttpProtocol\\.ProcessRequests|Http[123]\\w*\\.(?:ProcessRequest|Execute))")],
  ["middleware", "middleware", new RegExp("^Microsoft\\.AspNetCore\\.(?:(?:\\w+\\.)*\\w*Middleware(?:Impl)?(?:<.*>)?\\." +
    "|Builder\\.Use|Mvc\\.Infrastructure\\.(?:ResourceInvoker|ControllerActionInvoker|ActionMethodExecutor)" +
    "|Routing\\.ActionEndpointFactory)")],
  ["async", "async machinery", new RegExp("^(?:static )?System\\.Threading\\.(?:ExecutionContext\\.Run" +
    "|Tasks\\.(?:Task\\.(?:Execute|Inner|RunContinuations|Finish|TrySet)|AwaitTaskContinuation" +
    "|SynchronizationContext|ThreadPoolTaskScheduler|TaskScheduler))" +
    "|^System\\.Runtime\\.CompilerServices\\.\\w*" +
    "(?:AsyncTask|AsyncValueTask|AsyncVoid|AsyncMethod|TaskAwaiter|YieldAwait)" +
    "|^Microsoft\\.FSharp\\.Control\\.(?:Trampoline|AsyncPrimitives|AsyncActivation)" +
    "|^<StartupCode\\$FSharp-Core>\\.\\$Async")],
];
const foldOf = name => FOLDS.findIndex(([, , regex]) => regex.test(name));
const isPlumbing = name => foldOf(name) >= 0;

class Folds {
  constructor(recording) {
    const {names, kinds, frameKinds, frameCount, parent, frame} = recording;
    const frames = Int8Array.from({length: frameCount}, (_, i) => foldOf(names[i]));
    const kind = Array.from({length: frameCount}, (_, i) => kinds[frameKinds[i]][0]);
    const managed = kind.map(token => !["runtime", "native", "kernel", "cut"].includes(token));
    const leads = new Uint8Array(parent.length);
    for (let i = parent.length - 1; i > 0; i--) {
      if (leads[i] || managed[frame[i]]) leads[parent[i]] = 1;
    }
    this.recording = recording;
    this.opened = new Set();  // canonical boxes, see there
    this.kind = new Int8Array(parent.length).fill(-1);  // per node: index in FOLDS, or -1
    for (let i = 1; i < parent.length; i++) {
      const above = this.kind[parent[i]], native = kind[frame[i]] === "runtime" && leads[i];
      this.kind[i] = frames[frame[i]];
      if (this.kind[i] >= 0 || !native) continue;
      if (parent[i] === 0) this.kind[i] = 0;  // the program's own start
      else if (above === 0 || above === 1) this.kind[i] = above;
    }
    this.any = this.kind.some(kind => kind >= 0);
  }

  // Per node: the box that it is in when everything is folded, which is what a box is known by: no
  // selection and no other box that is open or not changes it.
  get canonical() {
    if (this.boxes) return this.boxes;
    const {recording: {parent, frame}} = this, none = new Set();
    const builder = new TreeBuilder(this.recording, 1024, {});
    this.boxes = new Int32Array(parent.length);
    for (let i = 1; i < parent.length; i++) {
      this.boxes[i] = this.place(builder, this.boxes[parent[i]], i, frame[i], none);
    }
    return this.boxes;
  }

  // The node of the builder for the recording's node i, below `above`: its own, or a box's.
  place(builder, above, i, frame, opened = this.opened) {
    const kind = this.kind[i];
    if (kind < 0 || (opened.size > 0 && opened.has(this.canonical[i]))) return builder.child(above, frame);
    const box = this.recording.frameCount + kind;
    return builder.frame[above] === box ? above : builder.child(above, box);
  }

  // The recording's nodes in a box of the tree.
  inside(tree, node) {
    const nodes = [];
    for (let i = 1; i < this.kind.length; i++) if (this.kind[i] >= 0 && tree.at(i) === node) nodes.push(i);
    return nodes;
  }

  open(nodes) {
    for (const i of nodes) if (this.kind[i] >= 0) this.opened.add(this.canonical[i]);
  }

  close(i) {
    return this.kind[i] >= 0 && this.opened.delete(this.canonical[i]);
  }
}
