import Base
import Testing

@testable import Scheduler

struct DeadlineHeapTests {
    private static func at(_ seconds: Int64) -> Timestamp { Timestamp(secondsSince1970: seconds) }

    @Test("An empty heap returns no entry")
    func empty() {
        var heap = DeadlineHeap()
        #expect(heap.isEmpty)
        #expect(heap.first == nil)
        #expect(heap.popDue(at: Self.at(1_000)) == nil)
        #expect(heap.remove(1) == false)
        #expect(heap.deadline(of: 1) == nil)
    }

    @Test("Due entries come out, earliest first, and others stay")
    func popsWhatIsDue() {
        var heap = DeadlineHeap()
        for (key, seconds) in [(1, 30), (2, 10), (3, 20), (4, 40)] as [(Int64, Int64)] {
            heap.set(key, deadline: Self.at(seconds))
        }
        var keys: [Int64] = []
        while let entry = heap.popDue(at: Self.at(30)) { keys.append(entry.key) }
        #expect(keys == [2, 3, 1])
        #expect(heap.count == 1)
        #expect(heap.first == .init(deadline: Self.at(40), key: 4))
    }

    @Test("Of entries with the same deadline the smaller key is first")
    func tiesGoByKey() {
        var heap = DeadlineHeap()
        for key in [5, 3, 9, 1, 7] as [Int64] { heap.set(key, deadline: Self.at(10)) }
        var keys: [Int64] = []
        while let entry = heap.popDue(at: Self.at(10)) { keys.append(entry.key) }
        #expect(keys == [1, 3, 5, 7, 9])
    }

    @Test("A key that is set again moves, earlier or later, and exists once")
    func moves() {
        var heap = DeadlineHeap()
        for key in 1...6 as ClosedRange<Int64> { heap.set(key, deadline: Self.at(key * 10)) }
        heap.set(6, deadline: Self.at(1))
        heap.set(1, deadline: Self.at(100))
        #expect(heap.violation == nil)
        #expect(heap.count == 6)
        #expect(heap.first?.key == 6)
        #expect(heap.deadline(of: 1) == Self.at(100))
    }

    @Test("The heap agrees with a sorted list through random changes", arguments: 1...60 as ClosedRange<UInt64>)
    func agreesWithModel(seed: UInt64) {
        let random = SeededRandom(seed: seed)
        func below(_ bound: UInt64) -> Int64 { Int64(random.nextBits() % bound) }

        var heap = DeadlineHeap()
        var model: [Int64: Timestamp] = [:]
        func modelFirst() -> DeadlineHeap.Entry? {
            model.map { DeadlineHeap.Entry(deadline: $0.value, key: $0.key) }.min()
        }

        for step in 0..<300 {
            let comment: Comment = "seed \(seed), step \(step)"
            let key = below(80)
            switch below(10) {
            case 0..<6:
                let deadline = Self.at(below(40))
                heap.set(key, deadline: deadline)
                model[key] = deadline
            case 6..<8:
                #expect(heap.remove(key) == (model.removeValue(forKey: key) != nil), comment)
            default:
                let now = Self.at(below(40))
                let expected = modelFirst().flatMap { $0.deadline <= now ? $0 : nil }
                #expect(heap.popDue(at: now) == expected, comment)
                if let expected { model[expected.key] = nil }
            }
            #expect(heap.violation == nil, comment)
            #expect(heap.count == model.count, comment)
            #expect(heap.first == modelFirst(), comment)
            #expect(heap.deadline(of: key) == model[key], comment)
        }

        var drained: [DeadlineHeap.Entry] = []
        while let entry = heap.popDue(at: Self.at(40)) { drained.append(entry) }
        let sorted = model.map { DeadlineHeap.Entry(deadline: $0.value, key: $0.key) }.sorted()
        #expect(drained == sorted, "seed \(seed)")
    }
}

extension DeadlineHeap {
    /// A description of the heap's first fault, or `nil` if it is sound.
    fileprivate var violation: String? {
        guard offsets.count == entries.count else {
            return "\(entries.count) entries but \(offsets.count) tracked positions"
        }
        for (offset, entry) in entries.enumerated() {
            guard offsets[entry.key] == offset else {
                return "key \(entry.key) is at \(offset) and tracked elsewhere"
            }
            if let parent = Self.parent(of: offset), entry < entries[parent] {
                return "the entry at \(offset) is due before its parent at \(parent)"
            }
        }
        return nil
    }
}
