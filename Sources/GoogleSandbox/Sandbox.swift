internal import Base
private import Dispatch
internal import HTTPServer
private import Synchronization

/// Runs the sandbox: waits and answers as ``SandboxState`` decides.
final class Sandbox: Sendable {
    /// The longest time for which a request gets no answer or is on hold, and for which a control request waits.
    private static let maximumWait = Duration.seconds(60)

    let time: any TimeSource
    let stateChanges = ChangeSignal()
    private let state: Mutex<SandboxState>
    private let securityEvents = Mutex(SandboxSecurityEvents())
    private let log: @Sendable (String) -> Void

    init(time: any TimeSource, random: any RandomSource, log: @escaping @Sendable (String) -> Void) {
        self.time = time
        state = Mutex(SandboxState(random: random))
        self.log = log
    }

    func withState<Value, Failure: Error>(
        _ body: (inout SandboxState) throws(Failure) -> sending Value
    ) throws(Failure) -> sending Value {
        try state.withLock(body)
    }

    func withSecurityEvents<Value, Failure: Error>(
        _ body: (inout SandboxSecurityEvents) throws(Failure) -> sending Value
    ) throws(Failure) -> sending Value {
        try securityEvents.withLock(body)
    }

    @Sendable func answer(_ request: ServerRequest) async -> ServerReply {
        if request.path.hasPrefix("/control/") { return .respond(await control(request)) }
        if let reply = securityEventAnswer(request) {
            log("\(request.method) \(request.path)")
            return reply
        }
        guard let parsed = SandboxRequest(request) else {
            withState { $0.countUnknownRoute() }
            return .respond(.text("404. That's an error.\n", status: 404))
        }
        let pending = withState { $0.begin(parsed) }
        let reply: ServerReply
        let label: String
        do {
            if pending.delay > .zero { try await time.sleep(for: pending.delay) }
            try await waitForRelease(pending)
            switch withState({ $0.answer(parsed, for: pending, now: time.now) }) {
            case .reply(let outcome, let name):
                (reply, label) = (outcome, name)
            case .hang:
                try await time.sleep(for: Self.maximumWait)
                (reply, label) = (.drop, "hang")
                withState { $0.end(pending, label: label) }
            }
        } catch {
            // The connection is lost, so the task has been cancelled.
            (reply, label) = (.drop, "client_gone")
            withState { $0.end(pending, label: label) }
        }
        log("\(request.method) \(request.path) \(label)")
        return reply
    }

    private func waitForRelease(_ pending: SandboxState.Pending) async throws {
        guard pending.grant != nil, withState({ $0.isOnHold(pending) }) else { return }
        let later = stateChanges.changes(atMost: Self.maximumWait)
        withState { $0.countHold(pending, by: 1) }
        defer { withState { $0.countHold(pending, by: -1) } }
        stateChanges.notify()
        guard withState({ $0.isOnHold(pending) }) else { return }
        for await _ in later where !withState({ $0.isOnHold(pending) }) { return }
        try Task.checkCancellation()
    }

    /// Waits until the number of requests on hold is reached, and returns `false` if it is not reached in time.
    func waitForHolding(_ count: Int) async -> Bool {
        let later = stateChanges.changes(atMost: Self.maximumWait)
        if withState({ $0.statistics.holding >= count }) { return true }
        for await _ in later where withState({ $0.statistics.holding >= count }) { return true }
        return false
    }
}

/// The control routes.
extension Sandbox {
    func control(_ request: ServerRequest) async -> ServerResponse {
        do throws(ControlError) {
            switch (request.method, request.path) {
            case ("GET", "/control/grants"):
                return .json(withState { $0.grantList }.text)
            case ("GET", "/control/settings"):
                return .json(withState { $0.settings }.json.text)
            case ("GET", "/control/faults"):
                return .json(OrderedJSON.array(SandboxFault.names.map(OrderedJSON.string)).text)
            case ("GET", "/control/stats"):
                let withGrants = request.queryValue("grants") == "1"
                return .json(withState { $0.statisticsJSON(withGrants: withGrants) }.text)
            case ("GET", "/control/wait"):
                return try await wait(request)
            case ("POST", _):
                let result = try change(request)
                stateChanges.notify()
                return .json(result.text)
            default:
                throw ControlError("no such control route", status: 404)
            }
        } catch {
            let body: OrderedJSON = ["error": .string(error.message)]
            return .json(body.text, status: error.status)
        }
    }

    private func change(_ request: ServerRequest) throws(ControlError) -> OrderedJSON {
        guard let body = request.body.isEmpty ? [:] : OrderedJSON.parsed(request.body) else {
            throw ControlError("the body is not JSON")
        }
        if let result = try controlSecurityEvents(request.path, body: body) { return result }
        let now = time.now
        return try withState { (state) throws(ControlError) -> OrderedJSON in
            switch request.path {
            case "/control/grants":
                return try state.createGrants(body, now: now)
            case "/control/codes":
                return try state.createCode(body, now: now)
            case "/control/grants/set":
                return try state.setGrants(body)
            case "/control/settings":
                try state.apply(body)
                return state.settings.json
            case "/control/release":
                return try state.release(body)
            case "/control/expire-nonces":
                state.nonces.expire()
                return [:]
            case "/control/reset":
                state.reset()
                withSecurityEvents { $0.deleteStream() }
                return [:]
            default:
                throw ControlError("no such control route", status: 404)
            }
        }
    }

    private func wait(_ request: ServerRequest) async throws(ControlError) -> ServerResponse {
        guard let count = request.queryValue("holding").flatMap({ Int($0) }) else {
            throw ControlError("holding must be a number")
        }
        guard await waitForHolding(count) else { throw ControlError("too few requests on hold", status: 408) }
        let body: OrderedJSON = ["holding": .count(withState { $0.statistics.holding })]
        return .json(body.text)
    }
}

/// Notifies waiting tasks that the state has changed.
///
/// They then read the state.
final class ChangeSignal: Sendable {
    private struct State {
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    func notify() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Returns a stream with one element for each later change. The stream ends with the task that reads it, or after
    /// the time span.
    func changes(atMost span: Duration) -> AsyncStream<Void> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let number = state.withLock { state in
                state.next += 1
                state.listeners[state.next] = continuation
                return state.next
            }
            continuation.onTermination = { [self] _ in
                state.withLock { $0.listeners[number] = nil }
            }
            DispatchQueue.global().asyncAfter(deadline: .now() + .seconds(Int(span.components.seconds))) {
                continuation.finish()
            }
        }
    }
}
