import AccountClient
import Foundation
import FoundationNetworking
import Synchronization

/// The server's clock, and the error of the phone's clock.
final class SimulatedClock: Sendable {
    private let state = Mutex((seconds: 0, error: 0))

    /// The seconds that have passed on the server's clock.
    var seconds: Int { state.withLock { $0.seconds } }
    /// The phone's time.
    var phoneNow: Date { state.withLock { Backend.now + TimeInterval($0.seconds + $0.error) } }

    func advance(by seconds: Int) { state.withLock { $0.seconds += seconds } }
    func set(error: Int) { state.withLock { $0.error = error } }
}

/// The network of the simulated phone: requests and responses wait in it until the simulation delivers or loses them.
final class SimulatedNetwork: Sendable {
    typealias Outcome = Result<(Data, HTTPURLResponse), AccountError>

    struct Request: Sendable {
        let path: String
        let bearer: String?
        let body: String
        let url: URL
    }

    struct Item: Sendable {
        let id: Int
        let process: Int
        let request: Request
        let sentAt: Int
        /// The server's response on its way back; nil while the request is on its way.
        var response: (status: Int, body: String)?
        /// Resumes the client; nil for a request that its client no longer waits for.
        var waiting: CheckedContinuation<Outcome, Never>?

        /// An order that does not depend on the order in which the client's tasks ran.
        var order: (Int, String, Int) { (process, request.path, id) }
    }

    private struct State {
        var items: [Int: Item] = [:]
        var sent = 0
        var isCut: Set<Int> = []
    }

    private let clock: SimulatedClock
    private let events: SimulationEvents
    private let state = Mutex(State())

    init(clock: SimulatedClock, events: SimulationEvents) {
        self.clock = clock
        self.events = events
    }

    /// All requests and responses on their way, in a reproducible order.
    var items: [Item] { state.withLock { $0.items.values.sorted { $0.order < $1.order } } }

    /// The number of requests that a process waits for.
    func waiting(in process: Int) -> Int {
        state.withLock { $0.items.values.count { $0.process == process && $0.waiting != nil } }
    }

    func transport(of process: Int) -> Transport {
        { request, _ throws(AccountError) in try await self.send(request, from: process).get() }
    }

    private func send(_ request: URLRequest, from process: Int) async -> Outcome {
        guard let url = request.url else { return .failure(.foreignAddress) }
        let sent = Request(
            path: url.path,
            bearer: request.value(forHTTPHeaderField: "Authorization").map { String($0.dropFirst("Bearer ".count)) },
            body: String(decoding: request.httpBody ?? Data(), as: UTF8.self),
            url: url
        )
        return await withCheckedContinuation { waiting in
            let isCut = state.withLock { state in
                if state.isCut.contains(process) { return true }
                state.sent += 1
                state.items[state.sent] = Item(
                    id: state.sent,
                    process: process,
                    request: sent,
                    sentAt: clock.seconds,
                    waiting: waiting
                )
                return false
            }
            if isCut { waiting.resume(returning: .failure(.unreachable(.networkConnectionLost))) }
            events.record()
        }
    }

    /// Puts the server's response on its way back; a client that no longer waits never gets it.
    func put(_ response: (status: Int, body: String), for id: Int) {
        state.withLock { state in
            if state.items[id]?.waiting == nil { state.items[id] = nil } else { state.items[id]?.response = response }
        }
    }

    /// Delivers a response to its client.
    func deliver(_ id: Int) {
        guard let item = take(id), let (status, body) = item.response,
            let response = HTTPURLResponse(
                url: item.request.url,
                statusCode: status,
                httpVersion: nil,
                headerFields: nil
            )
        else { return }
        item.waiting?.resume(returning: .success((Data(body.utf8), response)))
    }

    /// Loses a request or a response; its client gets an error.
    func lose(_ id: Int) { take(id)?.waiting?.resume(returning: .failure(.unreachable(.networkConnectionLost))) }

    /// Makes the client of a request time out, while the request continues to the server.
    func timeOut(_ id: Int) {
        let waiting = state.withLock { state in
            let waiting = state.items[id]?.waiting
            state.items[id]?.waiting = nil
            return waiting
        }
        waiting?.resume(returning: .failure(.unreachable(.timedOut)))
    }

    /// Ends a process: its requests continue to the server, and it does not get responses.
    func cut(_ process: Int) {
        let ids = state.withLock { state in
            state.isCut.insert(process)
            return state.items.values.filter { $0.process == process }.map { ($0.id, $0.response != nil) }
        }
        for (id, isResponse) in ids {
            if isResponse { lose(id) } else { timeOut(id) }
        }
    }

    private func take(_ id: Int) -> Item? { state.withLock { $0.items.removeValue(forKey: id) } }
}
