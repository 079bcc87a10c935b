import OpenTelemetry
import Synchronization

@testable import HTTPClient

/// A collector in memory, which answers as it is told and keeps what it gets.
final class FakeCollector: Collector {
    enum Answer: Sendable {
        case response(CollectorResponse)
        case error(HTTPError)
    }

    private struct State {
        var answers: [Answer]
        var bodies: [String] = []
    }

    private let state: Mutex<State>

    /// The last answer is repeated.
    init(_ answers: Answer...) {
        state = Mutex(State(answers: answers))
    }

    static let ok = Answer.response(CollectorResponse(status: 200))

    static func status(_ status: Int, retryAfter: Duration? = nil) -> Answer {
        .response(CollectorResponse(status: status, retryAfter: retryAfter))
    }

    static func failure(_ kind: HTTPError.Kind) -> Answer {
        .error(HTTPError(kind: kind, message: "as the test wants it"))
    }

    var bodies: [String] { state.withLock { $0.bodies } }

    func answer(_ answers: Answer...) { state.withLock { $0.answers = answers } }

    func post(_ body: [UInt8]) async throws(HTTPError) -> CollectorResponse {
        let answer = state.withLock { state in
            state.bodies.append(String(decoding: body, as: UTF8.self))
            return state.answers.count > 1 ? state.answers.removeFirst() : state.answers[0]
        }
        switch answer {
        case .response(let response): return response
        case .error(let error): throw error
        }
    }
}
