// What tests/live/record/descriptors.sh records: a program that takes each descriptor that clrsnap keeps open in it for a
// file of its own. (All of them, as a daemon does, it could not: the runtime needs its own.) Arguments: a folder for
// these files. Each line on standard input is answered: "take" takes descriptors until there are no new ones and
// says which kinds they were of, "check" says "intact" or what has become of the files, "end" ends.
using System.Runtime.InteropServices;
using System.Text;

namespace Descriptors;

static class Program
{
    [DllImport("libc")]
    static extern int dup2(int from, int to);

    [DllImport("libc")]
    static extern long lseek(int fd, long offset, int whence);

    const int Size = 8192, Position = 100, Current = 1;
    static readonly (string Begin, string End, string Kind)[] Kinds =
    {
        ("/proc/", "/syscall", "syscall"), ("/proc/", "/schedstat", "schedstat"), ("/proc/", "/status", "status"),
        ("/proc/", "/stat", "stat"), ("/proc/", "/sched", "sched"), ("/proc/", "/mem", "mem"),
        ("anon_inode:", "[perf_event]", "event"), ("/memfd:clrsnap", "(deleted)", "memory"), ("", "/clrsnap.log", "log"),
    };
    static readonly Dictionary<int, string> Taken = new();
    static readonly object Gate = new();
    static string folder = "";
    static volatile int sink;

    // The long-lived ones are those that a second reading still finds.
    static Dictionary<int, string> Kept()
    {
        var kept = new Dictionary<int, string>();
        foreach (string path in Directory.GetFiles("/proc/self/fd"))
        {
            string target = new FileInfo(path).LinkTarget ?? "";
            string? kind = Kinds.FirstOrDefault(k => target.StartsWith(k.Begin) && target.EndsWith(k.End)).Kind;
            if (kind != null) kept[int.Parse(Path.GetFileName(path))] = kind;
        }
        return kept;
    }

    static byte[] Content(int number) => Encoding.ASCII.GetBytes(string.Concat(Enumerable.Repeat($"{number} ", Size)))[..Size];

    static void Take(int number)
    {
        string path = $"{folder}/{number}.{Taken.Count}";
        File.WriteAllBytes(path, Content(number));
        using (var file = new FileStream(path, FileMode.Open, FileAccess.ReadWrite))
            if (dup2((int)file.SafeFileHandle.DangerousGetHandle(), number) != number) throw new IOException("dup2");
        lseek(number, Position, 0);
        Taken[number] = path;
    }

    static string TakeAll(string[] wanted)
    {
        var kinds = new SortedSet<string>();
        for (int round = 0, idle = 0; (idle < 8 || !wanted.All(kinds.Contains)) && round < 300; round++)
        {
            Dictionary<int, string> before = Kept();
            Thread.Sleep(100);
            idle++;
            foreach ((int number, string kind) in Kept())
            {
                if (!before.TryGetValue(number, out string? was) || was != kind) continue;
                if (kinds.Add(kind)) idle = 0;
                Take(number);
            }
        }
        return $"taken {string.Join(' ', kinds)}";
    }

    static string Check()
    {
        var wrong = new List<string>();
        foreach ((int number, string path) in Taken)
        {
            if (new FileInfo($"/proc/self/fd/{number}").LinkTarget != path) wrong.Add($"{number} is closed");
            else if (lseek(number, 0, Current) != Position) wrong.Add($"{number} was read");
            if (!File.ReadAllBytes(path).AsSpan().SequenceEqual(Content(number))) wrong.Add($"{number} was written to");
        }
        return wrong.Count > 0 ? string.Join(", ", wrong) : Taken.Count > 0 ? "intact" : "nothing was taken";
    }

    static void Start(Action act) => new Thread(() => { while (true) act(); }) { IsBackground = true }.Start();

    // Threads that sleep all the time, that wake up, that come and go, that run, and that wait for a lock.
    static void Populate()
    {
        for (int i = 0; i < 10; i++) Start(() => Thread.Sleep(Timeout.Infinite));
        for (int i = 0; i < 10; i++) Start(() => Thread.Sleep(7));
        Start(() =>
        {
            var thread = new Thread(() => Thread.Sleep(300));
            thread.Start();
            thread.Join();
        });
        Start(() => { for (int i = 0; i < 10_000_000; i++) sink += i; Thread.Sleep(10); });
        for (int i = 0; i < 2; i++) Start(() => { lock (Gate) Thread.Sleep(20); sink += new byte[5000].Length; });
        Start(() =>
        {
            try { throw new InvalidOperationException(); }
            catch (InvalidOperationException) { Thread.Sleep(20); }
        });
    }

    static void Main(string[] args)
    {
        folder = args[0];
        Populate();
        Console.WriteLine("ready");
        while (Console.ReadLine() is string line && line != "end") Console.WriteLine(line.StartsWith("take") ? TakeAll(line.Split(' ')[1..]) : Check());
    }
}
