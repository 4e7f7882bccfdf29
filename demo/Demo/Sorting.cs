// A generic quicksort, and libc's qsort with a managed callback: native code calling back into .NET for
// every comparison.
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;

namespace Demo;

static class Sorting
{
    public static void QuickSort<T>(Span<T> items, Comparison<T> compare)
    {
        while (items.Length > 16)
        {
            int middle = Partition(items, compare);
            QuickSort(items[..middle], compare);
            items = items[middle..];
        }
        InsertionSort(items, compare);
    }

    static int Partition<T>(Span<T> items, Comparison<T> compare)
    {
        T pivot = items[items.Length / 2];
        int low = -1, high = items.Length;
        while (true)
        {
            do low++; while (compare(items[low], pivot) < 0);
            do high--; while (compare(items[high], pivot) > 0);
            if (low >= high) return Math.Clamp(high + 1, 1, items.Length - 1);
            (items[low], items[high]) = (items[high], items[low]);
        }
    }

    static void InsertionSort<T>(Span<T> items, Comparison<T> compare)
    {
        for (int i = 1; i < items.Length; i++)
        {
            T item = items[i];
            int place = i;
            for (; place > 0 && compare(items[place - 1], item) > 0; place--) items[place] = items[place - 1];
            items[place] = item;
        }
    }

    public static void RequireSorted<T>(ReadOnlySpan<T> items, Comparison<T> compare)
    {
        for (int i = 1; i < items.Length; i++)
        {
            if (compare(items[i - 1], items[i]) > 0) throw new InvalidOperationException("not sorted");
        }
    }
}

static unsafe class Native
{
    [DllImport("libc", EntryPoint = "qsort")]
    static extern void LibcQSort(double* items, nuint count, nuint size,
                                 delegate* unmanaged[Cdecl]<double*, double*, int> compare);

    public static void QSort(double[] numbers)
    {
        fixed (double* items = numbers) LibcQSort(items, (nuint)numbers.Length, sizeof(double), &CompareFromNative);
    }

    [UnmanagedCallersOnly(CallConvs = [typeof(CallConvCdecl)])]
    static int CompareFromNative(double* a, double* b) => a->CompareTo(*b);
}
