private import CPostgres
private import Glibc

/// Owns one connection to the server.
///
/// Statements are sent in batches, each in one round trip: libpq's pipeline mode
/// (https://www.postgresql.org/docs/15/libpq-pipeline-mode.html). Waits are bounded by a deadline: libpq runs in
/// non-blocking mode, and `poll` waits.
///
/// It is not thread-safe: ``PostgresConnectionQueue`` lends it to one caller at a time. It is `@safe` because its
/// pointer is set once, never leaves it, and is closed only when no caller can use it any more.
@safe
final class PostgresConnection {
    let database: DatabaseName
    private let handle: OpaquePointer
    /// libpq sets it when the server has committed without its synchronous standby.
    private let isUnreplicated: UnsafeMutablePointer<Bool>
    /// The statements that the server keeps prepared for this connection.
    private var prepared: Set<String> = []
    /// The statements for a schema that is not the standard one, by the hash of the text for that.
    private var translations: [UInt64: SQLQuery] = [:]
    /// `true` if a pooler is in between, which can use another session for each transaction: no statement is kept
    /// prepared.
    private(set) var isPooled = false

    /// The server that responded when the connection was opened, or `nil` for a standby, and for one that does not
    /// identify itself.
    var identity: ServerIdentity?

    /// `true` once the server has answered a statement.
    ///
    /// Until then a pooler might have accepted the connection alone.
    private var hasAnswered = false

    /// Takes ownership of a connection that was just established.
    init(adopting handle: OpaquePointer, database: DatabaseName) {
        unsafe self.handle = handle
        self.database = database
        unsafe isUnreplicated = .allocate(capacity: 1)
        unsafe isUnreplicated.initialize(to: false)
        unsafe cpostgres_take_notices(handle, isUnreplicated)
        // Both calls only set a mode, and fail for a connection that is broken or busy: the first statement reports
        // that.
        _ = unsafe PQsetnonblocking(handle, 1)
        _ = unsafe PQenterPipelineMode(handle)
    }

    deinit {
        unsafe PQfinish(handle)
        unsafe isUnreplicated.deallocate()
    }

    /// The id of the process that serves this connection, as the server or a pooler reports it.
    var serverProcess: Int32 { unsafe PQbackendPID(handle) }
    var serverVersion: Int { Int(unsafe PQserverVersion(handle)) }
    var isEncrypted: Bool { unsafe PQsslInUse(handle) == 1 }
    var socket: Int32 { unsafe PQsocket(handle) }

    /// Stops keeping statements prepared.
    func markPooled() {
        isPooled = true
        prepared = []
    }

    func markDirect() { isPooled = false }

    /// `true` if the connection seems to be open, without a round trip: a server that went away has closed it by now.
    func seemsAlive() -> Bool {
        var readiness = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        // Reads all input: a server's last message comes before the end, and one read can return only that.
        while unsafe poll(&readiness, 1, 0) > 0 {
            guard unsafe PQconsumeInput(handle) == 1 else { return false }
        }
        return unsafe PQstatus(handle) == CONNECTION_OK
    }

    /// Reads unsolicited messages of the server, and returns the number of notifications, or `nil` if the connection is
    /// closed.
    func takeNotifications() -> Int? {
        guard seemsAlive() else { return nil }
        var count = 0
        while let notification = unsafe PQnotifies(handle) {
            unsafe PQfreemem(notification)
            count += 1
        }
        return count
    }

    /// Runs the statements of a batch in order, up to the first that fails.
    func run(_ batch: StatementBatch, until deadline: CallDeadline) throws(StoreError) -> [StatementResult] {
        unsafe isUnreplicated.pointee = false
        var results: [StatementResult] = []
        results.reserveCapacity(batch.entries.count)
        var preparing: Set<String> = []
        for entry in batch.entries {
            try send(translated(entry.query), with: entry.parameters, preparing: &preparing)
        }
        guard unsafe PQpipelineSync(handle) == 1 else { throw lost(during: "sending") }
        try flush(until: deadline)
        var failure: StoreError?
        do throws(StoreError) {
            for entry in batch.entries {
                let query = translated(entry.query)
                if preparing.remove(query.preparedName) != nil {
                    switch try outcome(of: query, until: deadline) {
                    case .success: prepared.insert(query.preparedName)
                    case .failure(let new): failure = failure ?? new
                    }
                }
                switch try outcome(of: query, until: deadline) {
                case .success(let result): results.append(result)
                case .failure(let new): failure = failure ?? new
                }
            }
            try readEndOfBatch(until: deadline)
        } catch {
            // A server that ends the session says why before it closes the connection.
            throw failure?.losingConnection ?? error
        }
        if let failure {
            if failure.sqlState == "26000" || failure.sqlState == "42P05" { markPooled() }
            throw failure
        }
        if unsafe isUnreplicated.pointee { throw StoreError(unreplicatedIn: database) }
        return results
    }

    /// Returns the statement for the tables of this connection's schema.
    private func translated(_ query: SQLQuery) -> SQLQuery {
        guard !database.schema.isStandard else { return query }
        if let known = translations[query.hash] { return known }
        let translation = SQLQuery(query.name, sql: database.schema.translated(query.text))
        translations[query.hash] = translation
        return translation
    }

    /// Reads the end of the batch.
    ///
    /// Otherwise the next one would read this one's results.
    private func readEndOfBatch(until deadline: CallDeadline) throws(StoreError) {
        let end = try nextResult(until: deadline)
        guard end?.isEndOfBatch == true else {
            let action = "reading the end of a batch"
            guard let end, !end.isDone, !end.isSkipped else { throw lost(during: action) }
            throw self.failure(end, during: action).losingConnection
        }
    }

    /// Runs a text of several statements without parameters and without rows.
    func execute(_ script: String, named name: String, until deadline: CallDeadline) throws(StoreError) {
        let script = database.schema.translated(script)
        guard unsafe PQexitPipelineMode(handle) == 1, unsafe PQsendQuery(handle, script) == 1 else {
            throw lost(during: name)
        }
        try flush(until: deadline)
        var failure: StoreError?
        do throws(StoreError) {
            while let result = try nextResult(until: deadline) {
                if !result.isDone, failure == nil { failure = self.failure(result, during: name) }
            }
        } catch {
            // The message that the server sent before it closed the connection has the reason.
            throw failure?.losingConnection ?? error
        }
        guard unsafe PQenterPipelineMode(handle) == 1 else { throw lost(during: name) }
        if let failure { throw failure }
    }

    // MARK: Sending

    private func send(_ query: SQLQuery, with parameters: Parameters, preparing: inout Set<String>)
        throws(StoreError)
    {
        let count = Int32(parameters.ranges.count)
        let name = query.preparedName
        if !isPooled, !prepared.contains(name), preparing.insert(name).inserted {
            guard unsafe PQsendPrepare(handle, name, query.text, count, parameters.kinds) == 1 else {
                throw lost(during: query.name)
            }
        }
        let lengths = parameters.ranges.map { Int32($0.count ?? 0) }
        let formats = [Int32](repeating: 1, count: parameters.ranges.count)
        let sent = unsafe parameters.buffer.withUnsafeBytes { bytes in
            var values: [UnsafePointer<CChar>?] = unsafe []
            for range in parameters.ranges {
                let start = unsafe bytes.baseAddress.map { unsafe $0 + range.start }
                unsafe values.append(range.count == nil ? nil : start?.assumingMemoryBound(to: CChar.self))
            }
            return if isPooled {
                unsafe PQsendQueryParams(handle, query.text, count, parameters.kinds, values, lengths, formats, 1)
            } else {
                unsafe PQsendQueryPrepared(handle, name, count, values, lengths, formats, 1)
            }
        }
        guard sent == 1 else { throw lost(during: query.name) }
    }

    private func flush(until deadline: CallDeadline) throws(StoreError) {
        while true {
            switch unsafe PQflush(handle) {
            case 0: return
            case 1:
                let readiness = try wait(for: POLLIN | POLLOUT, until: deadline)
                if readiness & POLLIN != 0, unsafe PQconsumeInput(handle) == 0 { throw lost(during: "sending") }
            default: throw lost(during: "sending")
            }
        }
    }

    // MARK: Reading

    /// Returns the result of one statement of a pipeline, which a null result ends.
    private func outcome(of query: SQLQuery, until deadline: CallDeadline) throws(StoreError)
        -> Result<StatementResult, StoreError>
    {
        guard let result = try nextResult(until: deadline) else { throw lost(during: query.name) }
        let outcome: Result<StatementResult, StoreError> =
            if result.isDone {
                .success(result)
            } else if result.isSkipped {
                .failure(StoreError(.fault, "A statement before \(query.name) failed in \(database)."))
            } else {
                .failure(failure(result, of: query))
            }
        guard unsafe PQstatus(handle) == CONNECTION_OK else {
            guard case .failure(let failure) = outcome else { throw lost(during: query.name) }
            throw failure.losingConnection
        }
        do throws(StoreError) {
            if try nextResult(until: deadline) != nil { throw lost(during: query.name) }
        } catch {
            guard case .failure(let failure) = outcome else { throw error }
            throw failure.losingConnection
        }
        return outcome
    }

    private func nextResult(until deadline: CallDeadline) throws(StoreError) -> StatementResult? {
        while unsafe PQisBusy(handle) == 1 {
            _ = try wait(for: POLLIN, until: deadline)
            if unsafe PQconsumeInput(handle) == 0 { throw lost(during: "reading") }
        }
        guard let result = unsafe PQgetResult(handle) else { return nil }
        hasAnswered = true
        return unsafe StatementResult(adopting: result)
    }

    private func wait(for events: Int32, until deadline: CallDeadline) throws(StoreError) -> Int32 {
        switch Self.wait(for: events, on: socket, until: deadline) {
        case nil: throw lost(during: "waiting")
        case let events? where events != 0: return events
        default:
            throw StoreError(
                .unreachable,
                "\(database.capitalizedFirst) gave no response in \(deadline.responseTimeout.inWords)"
                    + "\(hasAnswered ? "." : Self.poolerHint) It is tried again."
            ).losingConnection
        }
    }

    private static let poolerHint = """
         after it had accepted the connection. If a pooler is in front, no connection to the server is left in its \
        pool: \(ServerFacts.poolerAdvice).
        """

    /// Returns the events that happened, 0 if the time is over, and `nil` if the wait failed.
    static func wait(for events: Int32, on socket: Int32, until deadline: CallDeadline) -> Int32? {
        while true {
            var readiness = pollfd(fd: socket, events: Int16(events), revents: 0)
            let milliseconds = Int32(clamping: deadline.remainingForResponse.roundedUpMilliseconds)
            let count = unsafe poll(&readiness, 1, milliseconds)
            if count > 0 { return Int32(readiness.revents) }
            if count == 0, deadline.remainingForResponse == .zero { return 0 }
            if count < 0, errno != EINTR { return nil }
        }
    }

    // MARK: Failures

    private func failure(_ result: StatementResult, of query: SQLQuery) -> StoreError {
        var error = failure(result, during: query.name)
        error.isAnswerToCommit = query.preparedName == SQLQuery.commit.preparedName
        return error
    }

    private func failure(_ result: StatementResult, during action: String) -> StoreError {
        let isLost = unsafe PQstatus(handle) != CONNECTION_OK
        let (state, detail) = (result.state ?? (isLost ? "08006" : nil), result.message ?? lastMessage)
        let error = StoreError(state: state, detail: detail, database: database, during: action)
        return isLost ? error.losingConnection : error
    }

    private func lost(during action: String) -> StoreError {
        StoreError(state: "08006", detail: lastMessage, database: database, during: action).losingConnection
    }

    private var lastMessage: String { unsafe String(cString: PQerrorMessage(handle)).oneLine }
}

extension String {
    /// The text in one line: libpq's messages have line breaks and tabs.
    var oneLine: String { split(whereSeparator: { $0.isWhitespace || $0.isNewline }).joined(separator: " ") }
    var capitalizedFirst: String { prefix(1).uppercased() + dropFirst() }
}

extension Duration {
    /// The span in whole milliseconds, rounded up: a wait of zero would be a busy loop.
    fileprivate var roundedUpMilliseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000
    }

    var inWords: String { "\(components.seconds) s" }
}

extension PostgresStore {
    /// The version of the libpq that this process runs with, from a number such as 150014
    /// (https://www.postgresql.org/docs/current/libpq-misc.html).
    package static var libraryVersion: String {
        let number = PQlibVersion()
        return "\(number / 10_000).\(number % 10_000)"
    }
}
