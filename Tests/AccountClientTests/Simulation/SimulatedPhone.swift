import AccountClient
import Base
import Foundation
import Synchronization
import Testing

/// An app and its extension on one phone, whose network and processes fail as determined by a seed.
///
/// One thing happens at a time: the phone runs until every call waits for the network, then the seed chooses the next
/// event. So a seed gives the same run each time.
final class SimulatedPhone {
    /// The longest time that a request is on its way, in seconds.
    ///
    /// Together with the maximum age of a response that the client accepts, it is shorter than the server's grace: the
    /// server treats an older copy of a spent token as stolen.
    private static let longestRequest = 25

    /// The outcomes of the calls that have ended.
    private final class Outcomes: Sendable {
        let list = Mutex<[Result<Void, any Error>]>([])
    }

    private final class Process {
        let number: Int
        let client: AccountClient
        let store: MortalTokenStore
        let outcomes = Outcomes()
        var started = 0
        var isDead = false

        init(_ number: Int, _ client: AccountClient, _ store: MortalTokenStore) {
            self.number = number
            self.client = client
            self.store = store
        }

        var callsInProgress: Int { started - outcomes.list.withLock { $0.count } }
    }

    private let random: SeededRandom
    private let url: URL
    private let clock = SimulatedClock()
    private let events = SimulationEvents()
    private let network: SimulatedNetwork
    private let tokens = InMemoryTokenStore()
    private var server = SimulatedServer()
    private var processes: [Process] = []
    private var processesStarted = 0
    /// The events so far, for the report of a failure.
    private(set) var trace: [String] = []

    init(seed: UInt64) throws {
        random = SeededRandom(seed: seed)
        network = SimulatedNetwork(clock: clock, events: events)
        url = try #require(URL(string: "https://backend.example"))
        let pair = server.signIn(at: 0)
        tokens.save(pair.access, for: .accessToken)
        tokens.save(pair.refresh, for: .refreshToken)
    }

    /// Plays a number of events; returns a report if the user would be signed out, or nil.
    func play(events: Int) async throws -> String? {
        for _ in 0..<2 { try startProcess() }
        for _ in 0..<events {
            try playEvent()
            await waitUntilIdle()
            try replaceDeadProcesses()
            await waitUntilIdle()
            if let failureReport = failureReport() { return failureReport }
        }
        for process in processes { kill(process) }
        await waitUntilIdle()
        return try await restart()
    }

    /// Starts the app once more on a good network; then ends the session, which the app must notice.
    private func restart() async throws -> String? {
        processes = []
        let app = try startProcess()
        start(app, 2)
        await drain()
        start(app, 0)
        await drain()
        let failures = app.outcomes.list.withLock { $0.compactMap(\.failure) }
        if !failures.isEmpty { return "a restart on a good network failed: \(failures)" }
        if let failureReport = failureReport() { return failureReport }
        server.endSession()
        start(app, 2)
        await drain()
        return tokens.load(.refreshToken) == nil ? nil : "the end of the session was not noticed"
    }

    private func drain() async {
        await waitUntilIdle()
        while let item = network.items.first {
            if item.response == nil { network.put(server.response(to: item.request, at: clock.seconds), for: item.id) }
            network.deliver(item.id)
            await waitUntilIdle()
        }
    }

    private func failureReport() -> String? {
        if server.family.hasEnded { return "the server ended the session of an honest phone as stolen" }
        if tokens.load(.refreshToken) == nil { return "the tokens are lost" }
        for process in processes where process.outcomes.list.withLock({ $0.contains { $0.signedOut } }) {
            return "process \(process.number) was signed out"
        }
        return nil
    }

    // MARK: Events

    private func playEvent() throws {
        let items = network.items
        let requests = items.filter { $0.response == nil }
        let responses = items.filter { $0.response != nil }
        switch random.below(20) {
        case 0...4:
            let process = pick(processes)
            if process.callsInProgress < 5 { start(process, random.below(6)) }
        case 5...8 where !requests.isEmpty:
            let item = pick(requests)
            let response = server.response(to: item.request, at: clock.seconds)
            note("server responds to \(item.id) of \(item.process) \(item.request.path) with \(response.status)")
            network.put(response, for: item.id)
        case 9...12 where !responses.isEmpty:
            let item = pick(responses)
            note("process \(item.process) gets the response \(item.id)")
            network.deliver(item.id)
        case 13 where !items.isEmpty:
            let item = pick(items)
            note("\(item.response == nil ? "request" : "response") \(item.id) of \(item.process) is lost")
            network.lose(item.id)
        case 14 where !requests.isEmpty:
            let item = pick(requests)
            note("process \(item.process) gives up waiting for \(item.id)")
            network.timeOut(item.id)
        case 15 where items.contains { $0.waiting != nil }:
            let item = pick(items.filter { $0.waiting != nil })
            let faults = [
                (401, "<html>Log in to this network</html>"), (429, "{}"), (500, ""), (502, "<html>"), (503, "{}"),
            ]
            let response = faults[random.below(faults.count)]
            note("a proxy responds to \(item.id) of \(item.process) with \(response.0)")
            network.put(response, for: item.id)
            network.deliver(item.id)
        case 16: kill(pick(processes))
        case 17:
            let process = pick(processes)
            let writes = random.below(3)
            note("process \(process.number) dies after \(writes) writes")
            process.store.die(afterWrites: writes)
        case 18:
            let error = [0, -86_400, 86_400, 3600][random.below(4)]
            note("the phone's clock is off by \(error) s")
            clock.set(error: error)
        default: advance(by: [1, 5, 12, 30, 61, 1801, 86_400][random.below(7)])
        }
    }

    private func advance(by seconds: Int) {
        note("\(seconds) s pass")
        for item in network.items where item.response == nil {
            if clock.seconds + seconds - item.sentAt >= Self.longestRequest { network.lose(item.id) }
        }
        clock.advance(by: seconds)
    }

    private func start(_ process: Process, _ kind: Int) {
        process.started += 1
        let number = process.started
        note("process \(process.number) calls \(kind == 0 ? "forceRefresh" : kind == 1 ? "ifNeeded" : "status")")
        let client = process.client
        let outcomes = process.outcomes
        let events = events
        Task {
            let result = await Task {
                switch kind {
                case 0: try await client.forceRefresh()
                case 1: try await client.refreshTokensIfNeeded()
                default: _ = try await client.status(of: "things/\(number)")
                }
            }.result
            outcomes.list.withLock { $0.append(result) }
            events.record()
        }
    }

    @discardableResult
    private func startProcess() throws -> Process {
        processesStarted += 1
        let store = MortalTokenStore(tokens)
        let clock = clock
        let client = try AccountClient(
            baseURL: url,
            tokens: store,
            transport: network.transport(of: processesStarted),
            now: { clock.phoneNow },
            onRefreshChange: { [events] in events.record() }
        )
        let process = Process(processesStarted, client, store)
        note("process \(processesStarted) starts")
        processes.append(process)
        return process
    }

    private func kill(_ process: Process) {
        note("process \(process.number) is killed")
        process.isDead = true
        process.store.kill()
        network.cut(process.number)
    }

    private func replaceDeadProcesses() throws {
        for process in processes where !process.isDead && process.store.isDead { kill(process) }
        let dead = processes.count { $0.isDead }
        processes.removeAll { $0.isDead }
        for _ in 0..<dead { try startProcess() }
    }

    /// Returns once every call in progress waits for the network.
    ///
    /// Each step of a call ends with an event, so a state without an event since its first read is the current one.
    private func waitUntilIdle() async {
        while true {
            let count = events.count
            if await isIdle(), events.count == count { return }
            await events.wait(after: count)
        }
    }

    private func isIdle() async -> Bool {
        for process in processes {
            let waiting = await process.client.waitingCalls
            let refreshes = await process.client.isRefreshing ? 1 : 0
            let requests = network.waiting(in: process.number)
            if requests + waiting != process.callsInProgress + refreshes { return false }
        }
        return true
    }

    private func pick<Element>(_ elements: [Element]) -> Element { elements[random.below(elements.count)] }

    private func note(_ line: String) { trace.append("\(clock.seconds) s: \(line)") }
}

extension SeededRandom {
    fileprivate func below(_ count: Int) -> Int { Int(nextBits() % UInt64(count)) }
}

extension Result where Failure == any Error {
    fileprivate var failure: (any Error)? { if case .failure(let error) = self { error } else { nil } }

    fileprivate var signedOut: Bool {
        guard case .failure(let error) = self, let error = error as? AccountError else { return false }
        return error == .signedOut || error == .sessionReplaced
    }
}
