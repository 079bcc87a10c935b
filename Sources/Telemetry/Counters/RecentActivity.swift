package import Base

/// The refreshes of the last hour by minute, and of the last day by hour.
///
/// Minutes and hours are those of the wall clock, so that the figures of several workers can be added up.
package struct RecentActivity: Equatable, Sendable {
    /// The refreshes of one minute or hour.
    package struct Slot: Hashable, Sendable {
        package var refreshed = 0
        /// The tries without a success, whatever the reason.
        package var failed = 0
        /// The longest time from a due time to its try.
        package var maximumLateness: Duration = .zero

        fileprivate mutating func add(_ other: Slot) {
            refreshed += other.refreshed
            failed += other.failed
            maximumLateness = max(maximumLateness, other.maximumLateness)
        }
    }

    /// A slot with the time at which it begins.
    package struct TimedSlot {
        package let start: Timestamp
        package let slot: Slot
    }

    package enum Scale: String, CaseIterable, Sendable {
        case minute, hour

        /// So many slots are kept.
        package var count: Int { self == .minute ? 60 : 24 }
        package var length: Duration { self == .minute ? .seconds(60) : .seconds(3600) }

        /// The number of the slot since 1970.
        fileprivate func number(of instant: Timestamp) -> Int64 { instant.milliseconds / length.wholeMilliseconds }
    }

    private var slots: [Scale: [Int64: Slot]] = [:]

    package init() {}

    package var isEmpty: Bool { slots.isEmpty }

    /// Counts refreshes that ended together.
    mutating func record(_ refreshes: [CountedRefresh], at now: Timestamp) {
        // Summed up first, so that the slots are looked up once for each batch.
        var batch = Slot()
        for index in refreshes.indices {
            if refreshes[index].outcome == .refreshed { batch.refreshed += 1 } else { batch.failed += 1 }
            batch.maximumLateness = max(batch.maximumLateness, refreshes[index].lateness)
        }
        for scale in Scale.allCases { slots[scale, default: [:]][scale.number(of: now), default: Slot()].add(batch) }
    }

    /// Adds other refreshes, and forgets those that are too old, or in the future because a clock was set back.
    package mutating func add(_ other: RecentActivity, at now: Timestamp) {
        for scale in Scale.allCases {
            let latest = scale.number(of: now)
            for (number, slot) in other.slots[scale] ?? [:] {
                slots[scale, default: [:]][number, default: Slot()].add(slot)
            }
            // The clock of another worker can be a moment ahead.
            slots[scale] = slots[scale]?.filter { latest - Int64(scale.count) < $0.key && $0.key <= latest + 1 }
        }
    }

    /// Returns the slots, the oldest first. The last one is not over yet.
    package func slots(by scale: Scale, at now: Timestamp) -> [TimedSlot] {
        let latest = scale.number(of: now)
        return (latest - Int64(scale.count) + 1...latest).map { number in
            let start = Timestamp(milliseconds: number * scale.length.wholeMilliseconds)
            return TimedSlot(start: start, slot: slots[scale]?[number] ?? Slot())
        }
    }
}

/// The stored form: a line for each slot.
extension RecentActivity {
    package var text: String {
        slots.flatMap { scale, slots in
            slots.map { number, slot in
                "\(scale.rawValue) \(number) \(slot.refreshed) \(slot.failed) \(slot.maximumLateness.wholeMilliseconds)"
            }
        }.sorted().joined(separator: "\n")
    }

    /// A line that cannot be read is left out, such as one of a newer version.
    package init(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            // Larger ones are no figures, and sums of them could overflow.
            let numbers = words.dropFirst().compactMap { Int64($0) }.filter { 0...1_000_000_000_000 ~= $0 }
            guard let scale = words.first.flatMap({ Scale(rawValue: String($0)) }), numbers.count == 4 else { continue }
            slots[scale, default: [:]][numbers[0]] = Slot(
                refreshed: Int(numbers[1]),
                failed: Int(numbers[2]),
                maximumLateness: .milliseconds(numbers[3])
            )
        }
    }
}
