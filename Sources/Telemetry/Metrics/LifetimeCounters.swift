package import Base
private import Glibc
private import Synchronization

/// Counts the worker's actions since its start.
///
/// The numbers only grow, as Prometheus requires.
package final class LifetimeCounters: Sendable {
    /// Requests of one route whose answers had a status of one class, such as `2xx`.
    package struct Requests: Hashable, Comparable, Sendable {
        /// The pattern of the route, never the path: a path can name a user, and there are too many paths.
        package var route: String
        package var statusClass: String

        package static func < (left: Requests, right: Requests) -> Bool {
            (left.route, left.statusClass) < (right.route, right.statusClass)
        }
    }

    /// The requests of one service for tokens.
    package struct Vends: Sendable {
        package var tokens = 0
        package var errors = 0
        package var duration = DurationBuckets()
    }

    /// The counts so far.
    package struct Counts: Sendable {
        package fileprivate(set) var refreshes: [RefreshOutcome: Int] = [:]
        package fileprivate(set) var refreshDuration = DurationBuckets()
        package fileprivate(set) var vends: [String: Int] = [:]
        package fileprivate(set) var vendDuration = DurationBuckets()
        /// The same requests by the name of the service, if it is known.
        package fileprivate(set) var services: [String: Vends] = [:]
        package fileprivate(set) var requests: [Requests: Int] = [:]
        package fileprivate(set) var notices: [String: Int] = [:]
        package fileprivate(set) var securityEvents: [String: Int] = [:]
        package fileprivate(set) var alarms: [AlarmKind: Int] = [:]
    }

    package let startedAt: Timestamp
    private let state = Mutex(Counts())

    init(time: any TimeSource) {
        startedAt = time.now
    }

    package var counts: Counts { state.withLock { $0 } }

    func record(_ refreshes: [CountedRefresh]) {
        state.withLock { counts in
            for index in refreshes.indices {
                if let latency = refreshes[index].latency { counts.refreshDuration.record(latency) }
            }
            for (outcome, count) in refreshes.outcomes { counts.refreshes[outcome, default: 0] += count }
        }
    }

    /// Counts a request for a token by its outcome, as in the event `vend`, and the duration of its answer.
    package func recordVend(outcome: String, of service: String? = nil, isToken: Bool = true, duration: Duration) {
        state.withLock { counts in
            counts.vends[outcome, default: 0] += 1
            counts.vendDuration.record(duration)
            guard let service else { return }
            counts.services[service, default: Vends()].tokens += isToken ? 1 : 0
            counts.services[service, default: Vends()].errors += isToken ? 0 : 1
            counts.services[service, default: Vends()].duration.record(duration)
        }
    }

    /// Counts an HTTP request.
    ///
    /// `route` is the pattern of its route, or `-` if no route matches.
    package func recordRequest(route: String, status: Int) {
        let key = Requests(route: route, statusClass: "\(status / 100)xx")
        state.withLock { $0.requests[key, default: 0] += 1 }
    }

    /// Counts one delivery of a notice by its outcome, as a code.
    package func recordNotice(outcome: String) {
        state.withLock { $0.notices[outcome, default: 0] += 1 }
    }

    /// Counts a line of the event `alarm`.
    package func recordAlarm(_ kind: AlarmKind) {
        state.withLock { $0.alarms[kind, default: 0] += 1 }
    }

    /// Counts a security event by the last part of its type, as a code.
    package func recordSecurityEvent(kind: String) {
        state.withLock { $0.securityEvents[kind, default: 0] += 1 }
    }
}

/// Counts of durations by length, in the buckets of a Prometheus histogram.
package struct DurationBuckets: Sendable {
    /// The upper bounds, from the resolution of the clock to the longest time that a caller waits for a refresh.
    package static let bounds: [Duration] = [
        .milliseconds(1), .milliseconds(2), .milliseconds(5), .milliseconds(10), .milliseconds(25), .milliseconds(50),
        .milliseconds(100), .milliseconds(250), .milliseconds(500), .seconds(1), .milliseconds(2_500), .seconds(5),
        .seconds(10), .seconds(30),
    ]

    /// The number of durations above the previous bound and up to this one, for each bound.
    package private(set) var counts = [Int](repeating: 0, count: Self.bounds.count)
    package private(set) var count = 0
    package private(set) var sum: Duration = .zero

    package init() {}

    /// Returns the bound that a `share` of the durations does not exceed, or `nil` without one.
    package func bound(of share: Double) -> Duration? {
        var below = 0
        for (bound, count) in zip(Self.bounds, counts) {
            below += count
            if below > 0, Double(below) >= share * Double(self.count) { return bound }
        }
        return nil
    }

    /// Counts a duration.
    ///
    /// A negative one counts as zero.
    package mutating func record(_ span: Duration) {
        let span = max(.zero, span)
        if let index = Self.bounds.firstIndex(where: { span <= $0 }) { counts[index] += 1 }
        count += 1
        sum += span
    }
}

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
        package var longestLateness: Duration = .zero

        fileprivate mutating func add(_ other: Slot) {
            refreshed += other.refreshed
            failed += other.failed
            longestLateness = max(longestLateness, other.longestLateness)
        }
    }

    package enum Scale: String, CaseIterable, Sendable {
        case minute, hour

        /// The number of slots that are kept.
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
            batch.longestLateness = max(batch.longestLateness, refreshes[index].lateness)
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

    /// Returns the slots with the times at which they begin, the oldest first.
    ///
    /// The last one is not over yet.
    package func slots(by scale: Scale, at now: Timestamp) -> [(start: Timestamp, slot: Slot)] {
        let latest = scale.number(of: now)
        return (latest - Int64(scale.count) + 1...latest).map { number in
            let start = Timestamp(milliseconds: number * scale.length.wholeMilliseconds)
            return (start, slots[scale]?[number] ?? Slot())
        }
    }
}

/// The stored form: a line for each slot.
extension RecentActivity {
    package var text: String {
        slots.flatMap { scale, slots in
            slots.map { number, slot in
                "\(scale.rawValue) \(number) \(slot.refreshed) \(slot.failed) \(slot.longestLateness.wholeMilliseconds)"
            }
        }.sorted().joined(separator: "\n")
    }

    /// A line that cannot be read is left out, such as one of a newer version.
    package init(_ text: String) {
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            let numbers = words.dropFirst().compactMap { Int64($0) }
            guard let scale = words.first.flatMap({ Scale(rawValue: String($0)) }), numbers.count == 4 else { continue }
            slots[scale, default: [:]][numbers[0]] = Slot(
                refreshed: Int(numbers[1]),
                failed: Int(numbers[2]),
                longestLateness: .milliseconds(numbers[3])
            )
        }
    }
}

/// The resources that this process uses, as reported by the kernel.
package struct ProcessUsage: Hashable, Sendable {
    package var residentBytes: Int?
    package var openDescriptors: Int?
    /// The time on processors, of all threads together.
    package var cpuTime: Duration

    /// Reads the usage from `/proc`, which never waits for a disk.
    package static var current: ProcessUsage {
        ProcessUsage(
            residentBytes: residentPages.map { $0 * Int(getpagesize()) },
            openDescriptors: descriptors,
            // In microseconds (https://man7.org/linux/man-pages/man3/clock.3.html).
            cpuTime: .microseconds(clock())
        )
    }

    /// The second number of statm (https://man7.org/linux/man-pages/man5/proc_pid_statm.5.html).
    private static var residentPages: Int? {
        let descriptor = unsafe open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = unsafe read(descriptor, &buffer, buffer.count)
        guard count > 0 else { return nil }
        let numbers = String(decoding: buffer[..<count], as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]) : nil
    }

    private static var descriptors: Int? {
        guard let folder = unsafe opendir("/proc/self/fd") else { return nil }
        defer { unsafe closedir(folder) }
        var count = 0
        while let entry = unsafe readdir(folder) {
            // "." and "..", the only names that begin with a dot.
            if unsafe entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // The descriptor of the folder itself is not counted.
        return count - 1
    }
}
