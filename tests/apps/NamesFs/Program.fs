// SPDX-License-Identifier: MIT
// As tests/apps/Names, of the F# compiler: closures, local functions, sequences, tasks, asyncs,
// operators, active patterns, members.
module Shop.Program

open System.Collections.Generic
open System.Runtime.CompilerServices
open System.Runtime.InteropServices
open System.Threading.Tasks

[<DllImport("libc")>]
extern int clock_gettime(int clock, [<In; Out>] int64[] time)

// Of this thread, in nanoseconds.
let cpuTime () =
    let time = Array.zeroCreate 2
    if clock_gettime (3, time) <> 0 then failwith "clock_gettime"
    time[0] * 1_000_000_000L + time[1]

type Mark() =
    static let names = SortedSet<string>(System.StringComparer.Ordinal)

    [<MethodImpl(MethodImplOptions.NoInlining)>]
    static member At(name: string) =
        lock names (fun () -> names.Add name |> ignore)
        let finish = cpuTime () + 40_000_000L
        while cpuTime () < finish do ()

    static member Done() =
        for name in names do System.Console.WriteLine name

[<MethodImpl(MethodImplOptions.NoInlining)>]
let plain () = Mark.At "Shop.Program.plain"

[<MethodImpl(MethodImplOptions.NoInlining)>]
let apply (f: int -> unit) = f 1

let closures n =
    apply (fun x -> Mark.At "Shop.Program.closures@39"; ignore (x + n))
    apply (fun x -> Mark.At "Shop.Program.closures@40-1"; ignore (x * n))

let withLocal n =
    let local x = Mark.At "Shop.Program.withLocal@43"; ignore (x + n)
    apply local

let numbers () =
    seq {
        Mark.At "Shop.Program.numbers"
        yield 1
        yield 2
    }

let workTask () =
    task {
        Mark.At "Shop.Program.workTask"
        do! Task.Yield()
        Mark.At "Shop.Program.workTask"
    }

let workAsync () =
    async {
        Mark.At "Shop.Program.workAsync@62"
        do! Async.Sleep 1
        Mark.At "Shop.Program.workAsync@64-1"
    }

[<MethodImpl(MethodImplOptions.NoInlining)>]
let (|Even|Odd|) n = Mark.At "Shop.Program.|Even|Odd|"; (if n % 2 = 0 then Even else Odd)

type Cart(size: int) =
    member _.Count
        with [<MethodImpl(MethodImplOptions.NoInlining)>] get () = Mark.At "Shop.Program.Cart.Count.get"; size
    member _.Item
        with [<MethodImpl(MethodImplOptions.NoInlining)>] get (i: int) = Mark.At "Shop.Program.Cart.this[].get"; i
    [<MethodImpl(MethodImplOptions.NoInlining)>]
    static member (+) (a: Cart, _: Cart) = Mark.At "Shop.Program.Cart.operator +"; a

[<MethodImpl(MethodImplOptions.NoInlining)>]
let (|>>) a b = Mark.At "Shop.Program.operator |>>"; a + b

module Inner =
    [<MethodImpl(MethodImplOptions.NoInlining)>]
    let deep () = Mark.At "Shop.Program.Inner.deep"

[<EntryPoint>]
let main _ =
    Mark.At "Shop.Program.main"
    plain ()
    closures 1
    withLocal 2
    for _ in numbers () do ()
    (workTask ()).Wait()
    workAsync () |> Async.RunSynchronously
    (match 2 with Even -> () | Odd -> ())
    let cart = Cart 1
    ignore (cart.Count + cart[1])
    ignore (cart + cart)
    ignore (1 |>> 2)
    Inner.deep ()
    Mark.Done()
    0
