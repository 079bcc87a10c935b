internal import Base
internal import HTTPServer
private import Synchronization

/// Runs the sandbox: waits and answers as ``SandboxState`` decides.
final class Sandbox: Sendable {
    /// The longest time for which a request gets no answer or is on hold, and for which a control request waits.
    private static let longestWait = Duration.seconds(60)

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
            switch withState({ $0.answer(parsed, pending, now: time.now) }) {
            case .reply(let outcome, let name):
                (reply, label) = (outcome, name)
            case .hang:
                try await time.sleep(for: Self.longestWait)
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
        let later = stateChanges.changes(atMost: Self.longestWait)
        withState { $0.countHold(pending, by: 1) }
        defer { withState { $0.countHold(pending, by: -1) } }
        stateChanges.notify()
        guard withState({ $0.isOnHold(pending) }) else { return }
        for await _ in later where !withState({ $0.isOnHold(pending) }) { return }
        try Task.checkCancellation()
    }

    /// Waits until the number of requests on hold is reached, and returns `false` if it is not reached in time.
    func waitForHolding(_ count: Int) async -> Bool {
        let later = stateChanges.changes(atMost: Self.longestWait)
        if withState({ $0.statistics.holding >= count }) { return true }
        for await _ in later where withState({ $0.statistics.holding >= count }) { return true }
        return false
    }
}
