// SPDX-License-Identifier: MIT
// Every kind of method that the C# compiler gives a name of its own. Each calls Mark.At with the name
// that a reader of the source would give it; tests/live/names/names.sh records the program and holds the
// frame that called Mark.At against that.
using Shop;

Mark.Crew();
Mark.At("Program.Main");
void Local() => Mark.At("Program.Main.Local");
Local();
Action lambda = () => Mark.At("Program.Main.lambda#1");
lambda();
await Task.Yield();
Mark.At("Program.Main");

var cart = new Cart(3);
cart.Plain();
await cart.LoadAsync();
await cart.LoadAsync(1);
await cart.LoadValueAsync();
await cart.MapAsync<int>();
await cart.MapAsync<string>();
foreach (var _ in cart.Items()) { }
foreach (var _ in Cart.ItemsOf<int>()) { }
await foreach (var _ in cart.StreamAsync()) { }
cart.Lambdas();
cart.GenericLambda<int>();
await cart.AsyncLambda();
cart.LocalFunctions();
await cart.AsyncLocal();
cart.Count = cart.Count + cart[1];
cart[2] = cart["name"];
cart.Changed += cart.Plain;
cart.Changed -= cart.Plain;
_ = cart + cart;
_ = -cart;
_ = cart == new Cart(4);
_ = (int)cart;
Cart implicitly = 5;
_ = implicitly < cart;
cart++;
((IDisposable)cart).Dispose();
await ((IAsyncDisposable)cart).DisposeAsync();
_ = ((IBox<int>)cart).Value;
new Box<int>(1).Put(1);
new Box<string>("").Put("");
new Box<(int, string)>(default).Put(default);
new Box<KeyValuePair<string, (string, Guid)>>(default).Put(default);
new Box<string>.Lid<Guid>().CloseWith<byte>(1);
new Box<int>.Lid<long>().Close();
new Box<int>.Lid<long>().CloseWith<byte>(1);
await new Box<int>(1).PutAsync<string>(1);
new Box<int>(1).Each();
_ = new Point(1) with { X = 2 };
_ = new Point(3) { Init = 3 };
new Pump(1).Run();
new Hidden().Work();
2.Twice();
_ = "ab".Halves;
Cart.Outer.Inner.Deep();
Mark.Hire();
Mark.Done();

namespace Shop
{
    public interface IBox<T> { T Value { get; } }

    public sealed class Cart : IDisposable, IAsyncDisposable, IBox<int>
    {
        static Cart() => Mark.At("static Shop.Cart");
        public Cart(int size) { Mark.At("new Shop.Cart"); _ = size; }
        private readonly Action field = () => Mark.At("new Shop.Cart.lambda#0");

        public void Plain() => Mark.At("Shop.Cart.Plain");

        public async Task LoadAsync()
        {
            Mark.At("Shop.Cart.LoadAsync");
            await Task.Yield();
            Mark.At("Shop.Cart.LoadAsync");
        }
        public async Task LoadAsync(int n) { Mark.At("Shop.Cart.LoadAsync"); await Task.Delay(n); }
        public async ValueTask<int> LoadValueAsync()
        {
            await Task.Yield();
            Mark.At("Shop.Cart.LoadValueAsync");
            return 1;
        }
        public async Task<T?> MapAsync<T>()
        {
            await Task.Yield();
            Mark.At(typeof(T) == typeof(int) ? "Shop.Cart.MapAsync<int>" : "Shop.Cart.MapAsync<T>");
            return default;
        }

        public IEnumerable<int> Items()
        {
            try { Mark.At("Shop.Cart.Items"); yield return 1; }
            finally { Mark.At("Shop.Cart.Items.finally"); }
        }
        public static IEnumerable<T> ItemsOf<T>() { Mark.At("Shop.Cart.ItemsOf<int>"); yield break; }
        public async IAsyncEnumerable<int> StreamAsync()
        {
            Mark.At("Shop.Cart.StreamAsync");
            yield return 1;
            await Task.Yield();
            Mark.At("Shop.Cart.StreamAsync");
        }

        public void Lambdas()
        {
            int captured = 1;
            Action first = static () => Mark.At("Shop.Cart.Lambdas.lambda#0");
            Action second = () => { captured++; Mark.At("Shop.Cart.Lambdas.lambda#1"); };
            Action nested = () => { Action inner = () => Mark.At("Shop.Cart.Lambdas.lambda#3"); inner(); };
            first(); second(); nested();
            field();
        }
        public void GenericLambda<T>()
        {
            Action<T?> a = static t => Mark.At("Shop.Cart.GenericLambda<int>.lambda#0");
            a(default);
        }
        public async Task AsyncLambda()
        {
            Func<Task> f = async () => { await Task.Yield(); Mark.At("Shop.Cart.AsyncLambda.lambda#0"); };
            await f();
        }

        public void LocalFunctions()
        {
            int captured = 1;
            First();
            Second<int>();
            void First() { captured++; Mark.At("Shop.Cart.LocalFunctions.First"); Within(); }
            static void Second<T>() => Mark.At("Shop.Cart.LocalFunctions.Second<int>");
            static void Within() => Mark.At("Shop.Cart.LocalFunctions.Within");
        }
        public async Task AsyncLocal()
        {
            await Fetch();
            static async Task Fetch() { await Task.Yield(); Mark.At("Shop.Cart.AsyncLocal.Fetch"); }
        }

        public int Count
        {
            get { Mark.At("Shop.Cart.Count.get"); return 1; }
            set { Mark.At("Shop.Cart.Count.set"); }
        }
        public int this[int i]
        {
            get { Mark.At("Shop.Cart.this[].get"); return i; }
            set { Mark.At("Shop.Cart.this[].set"); }
        }
        public int this[string s] { get { Mark.At("Shop.Cart.this[].get"); return s.Length; } }
        public event Action Changed
        {
            add { Mark.At("Shop.Cart.Changed.add"); }
            remove { Mark.At("Shop.Cart.Changed.remove"); }
        }

        public static Cart operator +(Cart a, Cart b) { Mark.At("Shop.Cart.operator +"); return a; }
        public static Cart operator -(Cart a) { Mark.At("Shop.Cart.operator -"); return a; }
        public static Cart operator ++(Cart a) { Mark.At("Shop.Cart.operator ++"); return a; }
        public static bool operator ==(Cart a, Cart b) { Mark.At("Shop.Cart.operator =="); return true; }
        public static bool operator !=(Cart a, Cart b) => false;
        public static bool operator <(Cart a, Cart b) { Mark.At("Shop.Cart.operator <"); return true; }
        public static bool operator >(Cart a, Cart b) => false;
        public static explicit operator int(Cart a) { Mark.At("Shop.Cart.explicit operator"); return 1; }
        public static implicit operator Cart(int n) { Mark.At("Shop.Cart.implicit operator"); return new(n); }
        public override bool Equals(object? other) => other == (object)this;
        public override int GetHashCode() => 1;

        void IDisposable.Dispose() => Mark.At("Shop.Cart.System.IDisposable.Dispose");
        async ValueTask IAsyncDisposable.DisposeAsync()
        {
            await Task.Yield();
            Mark.At("Shop.Cart.System.IAsyncDisposable.DisposeAsync");
        }
        int IBox<int>.Value { get { Mark.At("Shop.Cart.Shop.IBox<System.Int32>.Value.get"); return 1; } }

        public static class Outer
        {
            public static class Inner { public static void Deep() => Mark.At("Shop.Cart.Outer.Inner.Deep"); }
        }
    }

    public class Box<T>(T content)
    {
        public void Put(T t) => Mark.At("Shop.Box<" + Argument() + ">.Put");
        private static string Argument() =>
            typeof(T) == typeof(int) ? "int" :
            typeof(T) == typeof((int, string)) ? "ValueTuple<int,T2>" :
            typeof(T) == typeof(KeyValuePair<string, (string, Guid)>) ? "KeyValuePair<TKey,ValueTuple<T1,Guid>>" : "T";
        public async Task PutAsync<U>(T t)
        {
            await Task.Yield();
            Mark.At("Shop.Box<int>.PutAsync<U>");
        }
        public void Each()
        {
            Action show = () => { _ = content; Mark.At("Shop.Box<int>.Each.lambda#0"); };
            show();
        }
        public class Lid<U>
        {
            public void Close() => Mark.At("Shop.Box<int>.Lid<long>.Close");
            public void CloseWith<V>(V v) =>
                Mark.At(typeof(T) == typeof(int) ? "Shop.Box<int>.Lid<long>.CloseWith<byte>" : "Shop.Box<T>.Lid<Guid>.CloseWith<byte>");
        }
    }

    public record Point(int X)
    {
        protected Point(Point other) { X = other.X; Mark.At("new Shop.Point"); }
        public int Init { init { Mark.At("Shop.Point.Init.set"); } }
    }

    public sealed class Pump(int step)
    {
        private readonly Func<int> next = () => { Mark.At("new Shop.Pump.lambda#0"); return 1; };
        private readonly Func<int> step = () => { Mark.At("new Shop.Pump.lambda#1"); return step; };
        public void Run() { next(); step(); }
    }

    file sealed class Hidden { public void Work() => Mark.At("Shop.Hidden.Work"); }

    public static class Extensions
    {
        public static void Twice(this int n) => Mark.At("Shop.Extensions.Twice");
        extension(string s)
        {
            public int Halves { get { Mark.At("Shop.Extensions.Halves.get"); return s.Length / 2; } }
        }
    }
}
