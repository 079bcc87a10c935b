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

        fileprivate mutating func record(isToken: Bool, _ duration: Duration) {
            if isToken { tokens += 1 } else { errors += 1 }
            self.duration.record(duration)
        }
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
            if let service { counts.services[service, default: Vends()].record(isToken: isToken, duration) }
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
