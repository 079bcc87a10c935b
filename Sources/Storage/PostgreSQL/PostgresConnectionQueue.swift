package import Base
private import Dispatch
private import Synchronization

/// Lends one connection to one caller at a time, on a serial queue of its own, since waiting for the server blocks.
///
/// It connects on demand.
final class PostgresConnectionQueue: Sendable {
    private struct State {
        var connection: PostgresConnection?
        /// Failed attempts to connect in a row, and the last one's error.
        var failures = 0
        var lastError: StoreError?
    }

    private let queue: DispatchQueue
    private let connector: Connector
    private let timeout: Duration
    private let idleLimit: Duration
    private let random: any RandomSource
    /// Only the queue takes the lock, so the lock never waits.
    private let state = Mutex(State())
    private let isClosed = Atomic(false)

    init(
        to connector: Connector,
        label: String,
        timeout: Duration,
        idleLimit: Duration = CallDeadline.idleLimit,
        random: any RandomSource
    ) {
        queue = DispatchQueue(label: label)
        self.connector = connector
        self.timeout = timeout
        self.idleLimit = idleLimit
        self.random = random
    }

    /// Runs `body` on the queue and returns its result, within the given timeout or the queue's own.
    ///
    /// Statements that can be repeated are, on a new connection if the old one is lost.
    func run<Value: Sendable>(
        timeout: Duration? = nil,
        _ body: @escaping @Sendable (PostgresConnection, CallDeadline) throws(StoreError) -> Value
    ) async throws(StoreError) -> Value {
        let deadline = CallDeadline(in: timeout ?? self.timeout, idleLimit: idleLimit)
        let outcome: Result<Value, StoreError> = await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(returning: self.perform(body, until: deadline))
            }
        }
        return try outcome.get()
    }

    func close() async {
        isClosed.store(true, ordering: .releasing)
        await withCheckedContinuation { continuation in
            queue.async {
                self.state.withLock { $0.connection = nil }
                continuation.resume()
            }
        }
    }

    private func perform<Value: Sendable>(
        _ body: @Sendable (PostgresConnection, CallDeadline) throws(StoreError) -> Value,
        until deadline: CallDeadline
    ) -> Result<Value, StoreError> {
        // The caller has given up by its own clock, or will. The statements would only cost the connection.
        guard !deadline.isOver else {
            let busy = StoreError(
                .busy,
                "\(connector.description.capitalizedFirst) was busy with other calls for "
                    + "\(deadline.timeout.inWords). Try again."
            )
            // Calls that waited while a connection was tried in vain have the same reason.
            return .failure(state.withLock(\.lastError) ?? busy)
        }
        return state.withLock { state in
            while true {
                do throws(StoreError) {
                    let connection = try self.connection(of: &state, until: deadline)
                    return .success(try body(connection, deadline))
                } catch {
                    // The server is a standby that was a primary: the next connection might find the new primary.
                    if error.losesConnection || error.sqlState == "25006" { state.connection = nil }
                    guard error.mayRunAgain, !deadline.isOver, !isClosed.load(ordering: .acquiring) else {
                        return .failure(error)
                    }
                }
            }
        }
    }

    private func connection(of state: inout State, until deadline: CallDeadline) throws(StoreError)
        -> PostgresConnection
    {
        if let connection = state.connection, connection.seemsAlive(), isCurrent(connection) { return connection }
        state.connection = nil
        while true {
            guard !isClosed.load(ordering: .acquiring) else { throw StoreError(.closed, "The store is closed.") }
            do throws(StoreError) {
                let connection = try connector.open(until: deadline)
                state.connection = connection
                state.failures = 0
                state.lastError = nil
                return connection
            } catch {
                state.failures += 1
                state.lastError = error
                let pause = Connector.pause(afterFailures: state.failures, random: random)
                // A server would refuse the same again. The next attempt also needs time: one that is cut short would
                // hide the reason behind "no response in time".
                guard [.unreachable, .readOnly].contains(error.code), pause * 2 < deadline.remaining else {
                    // Without the marks by which a call is run again.
                    throw StoreError(error.code, error.message)
                }
                SystemTime.blockThread(for: pause)
            }
        }
    }

    /// Returns `false` once a newer server is known than the one of this connection.
    private func isCurrent(_ connection: PostgresConnection) -> Bool {
        connector.newestServer?.admits(connection.identity) ?? true
    }
}

/// The end of the time that a call can take, by a clock that cannot be stepped.
///
/// It is the system's, even in tests: the thread that waits is woken by the system.
///
/// The server ends a statement at this time (``StatementBatch/addLimits(until:)``). The worker waits longer for the
/// response, by `grace`: on a busy machine the server's error arrives late, and the connection is lost if the worker
/// stops waiting before that.
struct CallDeadline: Sendable {
    /// How long a response can take after the server's own limit has passed.
    static let grace: Duration = .seconds(5)
    /// How long the server keeps a transaction that waits for its worker.
    ///
    /// Between two round trips a worker only decides. One that was suspended there holds the lock of all writers.
    static let idleLimit: Duration = .seconds(1)

    private let end: BootInstant
    private let grace: Duration
    private let idleLimit: Duration
    let timeout: Duration

    init(in timeout: Duration, grace: Duration = Self.grace, idleLimit: Duration = Self.idleLimit) {
        end = SystemTime().sinceBoot + timeout
        self.timeout = timeout
        self.grace = grace
        self.idleLimit = idleLimit
    }

    /// Returns the deadline for the next of `tries` hosts, which get equal parts of the remaining time.
    ///
    /// It has no grace: opening a connection sends no statement that the server ends.
    func part(of tries: Int) -> CallDeadline { CallDeadline(in: remaining / tries, grace: .zero) }

    var remaining: Duration { max(.zero, end - SystemTime().sinceBoot) }
    var isOver: Bool { remaining == .zero }

    /// The remaining time to receive a response.
    var remainingForResponse: Duration { max(.zero, end + grace - SystemTime().sinceBoot) }
    /// How long a call waits for a response at most.
    var responseTimeout: Duration { timeout + grace }
    /// The milliseconds that a server can spend on a statement: a little less than the remaining time.
    var serverLimit: String { "\(serverMilliseconds)" }
    /// The milliseconds after which a server ends a transaction whose next statement does not come.
    var serverIdleLimit: String { serverLimit(atMost: idleLimit) }

    func serverLimit(atMost limit: Duration?) -> String {
        guard let limit else { return serverLimit }
        return "\(min(serverMilliseconds, max(1, limit.wholeMilliseconds)))"
    }

    private var serverMilliseconds: Int64 {
        let left = remaining.wholeMilliseconds
        return max(1, left - min(left / 10, 500))
    }
}

extension Connector {
    private static let firstPause: Duration = .milliseconds(50)
    private static let maximumPause: Duration = .seconds(5)
    /// Doublings that reach the longest pause.
    private static let maximumDoublings = 7

    /// Returns the wait before the next attempt to connect.
    ///
    /// It doubles after each failure, with jitter, so that many workers do not come back at once.
    static func pause(afterFailures failures: Int, random: any RandomSource) -> Duration {
        min(firstPause * (1 << min(failures, maximumDoublings)), maximumPause) * (0.5 + random.nextUnit() / 2)
    }
}

/// The database's clock, continued between readings by this machine's boot clock: the time that all workers share, even
/// if the clocks of their machines differ by hours.
package final class DatabaseClock: TimeSource {
    let local: any TimeSource
    private let estimate = Mutex(ClockEstimate())

    package init(local: any TimeSource) {
        self.local = local
    }

    /// The database's time, or this machine's before the first reading.
    package var now: Timestamp {
        let sinceBoot = local.sinceBoot
        return estimate.withLock { $0.time(at: sinceBoot) } ?? local.now
    }

    package var sinceBoot: BootInstant { local.sinceBoot }

    package func sleep(for span: Duration) async throws(CancellationError) { try await local.sleep(for: span) }

    /// Takes a reading of the database's clock from some time between the request and the response.
    func take(_ reading: Timestamp, sentAt start: BootInstant, receivedAt end: BootInstant) {
        estimate.withLock { $0.take(reading, sentAt: start, receivedAt: end) }
    }
}

/// The estimate of another clock, from readings that each took some time.
///
/// A reading is assumed to be from the middle of its round trip, so its error is at most half of that.
struct ClockEstimate {
    /// The largest drift between two clocks: quartz is accurate to well within 0.1 ms per second.
    private static let drift = 0.000_1
    /// The resolution of the clocks: whole milliseconds.
    private static let resolution: Duration = .milliseconds(1)

    private var best: (time: Timestamp, middle: BootInstant, error: Duration)?

    func time(at instant: BootInstant) -> Timestamp? { best.map { $0.time + (instant - $0.middle) } }

    /// Takes a reading if it is more exact than the current estimate, or shows that the clock was stepped.
    mutating func take(_ time: Timestamp, sentAt start: BootInstant, receivedAt end: BootInstant) {
        let half = (end - start) / 2
        let reading = (time: time, middle: start + half, error: half + Self.resolution)
        guard let best, let expected = self.time(at: reading.middle) else { return best = reading }
        let difference = time > expected ? time - expected : expected - time
        let age = reading.middle > best.middle ? reading.middle - best.middle : .zero
        let bound = best.error + age * Self.drift
        if reading.error <= bound || difference > bound + reading.error { self.best = reading }
    }
}
