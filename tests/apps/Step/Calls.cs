// SPDX-License-Identifier: MIT
// Calls of every kind: through stubs that bind, dispatch, resolve, count and shuffle; tail calls; code
// that is made on first use.
using System;
using System.Collections.Generic;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;

namespace Step;

interface IShape { int Area(int scale); }
class Square : IShape { public int Area(int scale) => scale * 4; public virtual int Sides() => 4; }
class Circle : IShape { public int Area(int scale) => scale * 3; }
class Triangle : IShape { public int Area(int scale) => scale * 2; }
class Cube : Square { public override int Sides() => 12; }
class Generic { public virtual string Name<T>(T value) => typeof(T).Name; }
class Other : Generic { public override string Name<T>(T value) => value.ToString(); }

static unsafe class Calls
{
    internal static IEnumerable<Program.Scene> Scenes()
    {
        yield return new("calls: delegates", Delegates);
        yield return new("calls: interfaces, one type", () => Dispatch(one));
        yield return new("calls: interfaces, many types", () => Dispatch(many));
        yield return new("calls: virtual", () => sum += cube.Sides() + square.Sides());
        yield return new("calls: generic virtual", GenericVirtual);
        yield return new("calls: shared generics", () => sum += Shared("text") + Shared(new object()) + Shared(5));
        yield return new("calls: function pointers", Pointers);
        yield return new("calls: explicit tail calls", () => sum += tail(20));
        yield return new("calls: tail calls with a larger frame", () => sum += wideTail(6, 1, 2, 3, 4, 5, 6, 7));
        yield return new("calls: dynamic methods", () => sum += dynamic(3));
        yield return new("calls: iterators and closures", Iterate);
        yield return new("first: a method", () => FirstCall(), Cold: true);
        yield return new("first: a dynamic method", () => sum += Make(false)(2), Cold: true);
        yield return new("first: an interface call", () => Dispatch(fresh), Cold: true);
        yield return new("first: a generic instantiation", FirstInstantiation, Cold: true);
    }

    delegate int Eight(int a, int b, int c, int d, int e, int f, int g, int h);

    static int sum;
    static readonly Square square = new();
    static readonly Square cube = new Cube();
    static readonly IShape[] one = { new Square(), new Square() };
    static readonly IShape[] many = { new Square(), new Circle(), new Triangle(), new Cube(), new Circle() };
    static readonly IShape[] fresh = { new Circle(), new Triangle() };
    static readonly Func<int, int> tail = Make(true);
    static readonly Func<int, int> dynamic = Make(false);
    static readonly Eight wideTail = MakeWide();
    static readonly Func<int, int> openStatic = Static;
    static readonly Func<int, int> closed = new Cube().Sides2;

    [MethodImpl(MethodImplOptions.NoInlining)] static int Static(int x) => x + 1;
    static int Sides2(this Cube cube, int x) => cube.Sides() + x;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Delegates()
    {
        sum += openStatic(1) + closed(2);
        Func<int, int> both = openStatic;
        both += closed;
        sum += both(3);
        int captured = sum;
        Func<int, int> lambda = x => x + captured;
        sum += lambda(4);
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Dispatch(IShape[] shapes)
    {
        for (int i = 0; i < 2; i++)
            foreach (IShape shape in shapes) sum += shape.Area(i);
    }

    static readonly Generic[] generics = { new Generic(), new Other() };

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void GenericVirtual()
    {
        foreach (Generic g in generics) sum += g.Name("x").Length + g.Name(5).Length;
    }

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Shared<T>(T value) => new List<T> { value }.Count + (value is string ? 1 : 2);

    [MethodImpl(MethodImplOptions.NoInlining)]
    static void Pointers()
    {
        delegate*<int, int> pointer = &Static;
        for (int i = 0; i < 3; i++) sum += pointer(i);
    }

    // f(n) = n == 0 ? 1 : f(n - 1), as a tail call or not.
    static Func<int, int> Make(bool tail)
    {
        DynamicMethod method = new("recursive", typeof(int), new[] { typeof(int) }, typeof(Calls).Module);
        ILGenerator il = method.GetILGenerator();
        Label go = il.DefineLabel();
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Brtrue, go);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Ret);
        il.MarkLabel(go);
        il.Emit(OpCodes.Ldarg_0);
        il.Emit(OpCodes.Ldc_I4_1);
        il.Emit(OpCodes.Sub);
        if (tail) il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, method);
        il.Emit(OpCodes.Ret);
        return method.CreateDelegate<Func<int, int>>();
    }

    // Calls, as a tail call, a method with more arguments on the stack than it has itself: the runtime's
    // tail call helpers.
    static Eight MakeWide()
    {
        Type i = typeof(int);
        DynamicMethod target = new("wide", i, new[] { i, i, i, i, i, i, i, i, i, i, i, i }, typeof(Calls).Module);
        ILGenerator il = target.GetILGenerator();
        il.Emit(OpCodes.Ldarg_0);
        for (int a = 1; a < 12; a++) { il.Emit(OpCodes.Ldarg, a); il.Emit(OpCodes.Add); }
        il.Emit(OpCodes.Ret);
        DynamicMethod caller = new("narrow", i, new[] { i, i, i, i, i, i, i, i }, typeof(Calls).Module);
        il = caller.GetILGenerator();
        for (int a = 0; a < 12; a++) il.Emit(OpCodes.Ldarg, a % 8);
        il.Emit(OpCodes.Tailcall);
        il.Emit(OpCodes.Call, target);
        il.Emit(OpCodes.Ret);
        return caller.CreateDelegate<Eight>();
    }

    static IEnumerable<int> Squares(int n)
    {
        for (int i = 0; i < n; i++) yield return i * i;
    }

    static void Iterate()
    {
        foreach (int square in Squares(4)) sum += square;
    }

    [MethodImpl(MethodImplOptions.NoInlining)] static void FirstCall() => sum += Never(sum);
    [MethodImpl(MethodImplOptions.NoInlining)] static int Never(int x) => x * 7;

    struct Value<T> { public T Held; }
    static void FirstInstantiation() => sum += Shared(new Value<Value<short>>()) + Shared(new Value<char>());
}
