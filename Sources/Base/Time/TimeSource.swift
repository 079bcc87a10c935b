private import Glibc
private import Synchronization

/// The source of times and of the sleeps of tasks, which a test can replace.
///
/// Timers of Dispatch do not use it, nor do threads that block in a call or in ``SystemTime/blockThread(for:)``.
/// `grep -rn 'time: allowed' Sources` lists the code that reads a clock of the system itself.
package protocol TimeSource: Sendable {
    /// The wall clock, which an administrator or NTP can step.
    var now: Timestamp { get }

    /// The time since this machine booted, which cannot be stepped and which continues while the machine is suspended.
    var sinceBoot: BootInstant { get }

    /// Suspends the task for this span, and throws when the task is cancelled.
    func sleep(for span: Duration) async throws(CancellationError)
}

extension TimeSource {
    /// Repeats an action until its task is cancelled.
    package func `repeat`(every interval: Duration, immediately: Bool = true, _ action: () async -> Void) async {
        if immediately { await action() }
        while !Task.isCancelled {
            do {
                try await sleep(for: interval)
            } catch {
                return
            }
            await action()
        }
    }
}

/// An instant of the boot clock: comparable only with instants of the same boot.
package struct BootInstant: Hashable, Comparable, Sendable, Codable {
    package let milliseconds: Int64

    package init(milliseconds: Int64) {
        self.milliseconds = milliseconds.clamped(to: Timestamp.range)
    }

    package static func < (left: BootInstant, right: BootInstant) -> Bool { left.milliseconds < right.milliseconds }

    package static func + (instant: BootInstant, span: Duration) -> BootInstant {
        BootInstant(milliseconds: instant.milliseconds + span.wholeMilliseconds)
    }

    package static func - (left: BootInstant, right: BootInstant) -> Duration {
        .milliseconds(left.milliseconds - right.milliseconds)
    }
}

/// The clocks of the machine.
package struct SystemTime: TimeSource {
    package init() {}

    package var now: Timestamp { Timestamp(milliseconds: Self.read(CLOCK_REALTIME)) }

    package var sinceBoot: BootInstant { BootInstant(milliseconds: Self.read(CLOCK_BOOTTIME)) }

    package func sleep(for span: Duration) async throws(CancellationError) {
        do {
            try await Task.sleep(for: span)
        } catch {
            // Cancellation is the only error of a sleep.
            throw CancellationError()
        }
    }

    /// Blocks the calling thread, which must be one that only waits for a file or a database.
    package static func blockThread(for span: Duration) {
        usleep(useconds_t(clamping: span.wholeMilliseconds * 1000))
    }

    package static let bootIDPath = "/proc/sys/kernel/random/boot_id"

    /// The kernel's name for this boot, to which every ``BootInstant`` belongs, or `nil` if it cannot be read.
    package static var bootID: String? {
        let descriptor = unsafe open(bootIDPath, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe Glibc.read(descriptor, buffer.baseAddress, buffer.count)
        }
        let text = String(decoding: bytes.prefix(max(0, count)).prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
        return text.isEmpty ? nil : text
    }

    private static func read(_ clock: clockid_t) -> Int64 {
        var point = timespec()
        // Both clocks exist on every Linux since 2.6.39, so the call cannot fail.
        let result = unsafe clock_gettime(clock, &point)
        precondition(result == 0, "clock_gettime(\(clock)) failed with errno \(errno)")
        return Int64(point.tv_sec) * 1000 + Int64(point.tv_nsec) / 1_000_000
    }
}

extension TimeSource {
    /// Runs `body`, and returns when it has ended or the time is up.
    ///
    /// In the latter case `body` continues.
    ///
    /// - Returns: `true` if `body` has ended.
    @discardableResult
    package func wait(atMost span: Duration, for body: @escaping @Sendable () async -> Void) async -> Bool {
        await withCheckedContinuation { caller in
            let result = FirstResult(caller)
            let work = Task {
                await body()
                result.resume(returning: true)
            }
            let limit = Task {
                do {
                    try await sleep(for: span)
                } catch {
                    return
                }
                if result.resume(returning: false) { work.cancel() }
            }
            Task {
                await work.value
                limit.cancel()
            }
        }
    }
}

/// Resumes a waiting task with the first of several results.
package final class FirstResult: Sendable {
    private let caller: Mutex<CheckedContinuation<Bool, Never>?>

    package init(_ caller: CheckedContinuation<Bool, Never>) {
        self.caller = Mutex(caller)
    }

    /// Resumes the caller the first time, and returns `true` if it did.
    @discardableResult
    package func resume(returning result: Bool) -> Bool {
        let caller = self.caller.withLock { $0.take() }
        caller?.resume(returning: result)
        return caller != nil
    }
}

/// A value that one task replaces as a whole and others read.
package final class Shared<Value: Sendable>: Sendable {
    private let state: Mutex<Value>

    package init(_ value: Value) {
        state = Mutex(value)
    }

    package var value: Value {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
