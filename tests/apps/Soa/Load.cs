// SPDX-License-Identifier: MIT
// The service's own load: a thread for each client, with plain blocking sockets, so that clients use neither the pool
// nor async methods, and are easily told from the service in a recording.
using System.Net.Sockets;
using System.Runtime.CompilerServices;
using System.Text;
using System.Text.RegularExpressions;

namespace Soa;

static class Load
{
    // What to ask for, how many clients do, and how long each pauses between two requests.
    static readonly Dictionary<string, (string Path, int Clients, int PauseMs)> Plans = new()
    {
        ["health"] = ("/health", 1, 10),
        ["search"] = ("/search/red-shoes", 1, 5),
        ["quotes"] = ("/quotes/7", 2, 5),
        ["stock"] = ("/stock/7", 3, 1),
        ["profile"] = ("/profile/7", 2, 5),
        ["export"] = ("/export/500", 1, 5),
        ["parse"] = ("/parse/1,2,x,4", 1, 5),
        ["transfer"] = ("/transfer/left /transfer/right", 2, 0),
        ["order"] = ("/order/7", 4, 0),
        ["limited"] = ("/limited/7", 6, 0),
        ["cache"] = ("/cache/7", 1, 20),
        ["audit"] = ("/audit/7", 1, 1),
        ["pay"] = ("/pay/1 /pay/2", 2, 20),
        ["starved"] = ("/profile/8", 40, 0),
    };
    static readonly string[] Unanswered = ["transfer", "order", "starved"];
    static readonly Dictionary<string, StrongBox<int>> answers = new();
    // Payments for each search, at most. Where other programs need the processors, searches, which compute, take longer, and
    // payments, which spin until a time, do not: without a limit they would have the most CPU time there.
    const int PaymentsPerSearch = 4;

    public static void Start(string fault, Uri url)
    {
        (string paths, int clients, int pause) = Plans[fault];
        string[] each = paths.Split(' ');
        var count = new StrongBox<int>();
        var begun = new CountdownEvent(clients);
        var answered = new CountdownEvent(clients);
        StrongBox<int>? searches = fault == "pay" ? answers.GetValueOrDefault("search") : null;
        int before = searches?.Value ?? 0;
        bool mayAsk() => searches == null ||
            Volatile.Read(ref count.Value) <= PaymentsPerSearch * (Volatile.Read(ref searches.Value) - before);
        for (int i = 0; i < clients; i++)
        {
            string path = each[i % each.Length];
            new Thread(() => Ask(url, path, pause, begun, answered, count, mayAsk)) { Name = "client", IsBackground = true }.Start();
        }
        begun.Wait();
        if (!Unanswered.Contains(fault))
        {
            answered.Wait();
            answers[fault] = count;
        }
        Console.WriteLine($"ready {fault}");
    }

    public static void More(int count)
    {
        int[] goals = answers.Values.Select(a => Volatile.Read(ref a.Value) + count).ToArray();
        while (answers.Values.Zip(goals).Any(pair => Volatile.Read(ref pair.First.Value) < pair.Second)) Thread.Sleep(10);
        Console.WriteLine("done");
    }

    static void Ask(Uri url, string path, int pause, CountdownEvent begun, CountdownEvent answered, StrongBox<int> count,
        Func<bool> mayAsk)
    {
        using var socket = new Socket(AddressFamily.InterNetwork, SocketType.Stream, ProtocolType.Tcp) { NoDelay = true };
        socket.Connect(url.Host, url.Port);
        byte[] request = Encoding.ASCII.GetBytes($"GET {path} HTTP/1.1\r\nHost: {url.Host}\r\n\r\n");
        byte[] answer = new byte[1 << 12];
        for (bool first = true; ; first = false)
        {
            socket.Send(request);
            if (first) begun.Signal();
            Receive(socket, answer, path);
            if (first) answered.Signal();
            Interlocked.Increment(ref count.Value);
            if (pause > 0) Thread.Sleep(pause);
            while (!mayAsk()) Thread.Sleep(1);
        }
    }

    // Answers are short texts, chunked or with a Content-Length.
    static void Receive(Socket socket, byte[] answer, string path)
    {
        for (int length = 0; ;)
        {
            int read = socket.Receive(answer, length, answer.Length - length, SocketFlags.None);
            if (read == 0) throw new IOException($"{path}: the service closed the connection");
            string text = Encoding.ASCII.GetString(answer, 0, length += read);
            int body = text.IndexOf("\r\n\r\n", StringComparison.Ordinal) + 4;
            if (body < 4) continue;
            if (!Regex.IsMatch(text, "^HTTP/1.1 (200|503)")) throw new IOException($"{path}: {text}");
            Match header = Regex.Match(text, "Content-Length: ([0-9]+)");
            if (header.Success ? length >= body + int.Parse(header.Groups[1].Value) : text.EndsWith("0\r\n\r\n")) return;
        }
    }
}
