import Synchronization
import TestSupport
import WorkerTokens

/// A worker behind a transport: it records the requests, and answers when the test says so. Its clock stands still
/// until the test advances it.
final class FakeWorker: Sendable {
    private struct Pending {
        let number: Int
        let response: CheckedContinuation<WorkerTokens.Response, any Error>
    }

    private struct State: Sendable {
        var requests: [WorkerTokens.Request] = []
        var pending: [Pending] = []
        var seconds = 1000.0
    }

    private let state = AwaitedState(State())

    var requests: [WorkerTokens.Request] { state.value.requests }

    func client(baseURL: String = "https://worker.example.com") throws -> WorkerTokens {
        try WorkerTokens(
            baseURL: baseURL,
            credential: "credential-of-the-mailer",
            transport: { [self] in try await receive($0) },
            now: { [state] in state.value.seconds }
        )
    }

    func advance(bySeconds seconds: Double) { state.change { $0.seconds += seconds } }

    func waitForRequests(_ count: Int) async { await state.wait { $0.requests.count >= count } }

    /// Answers a request, by its number from one.
    func answer(_ number: Int, _ response: WorkerTokens.Response) async {
        await take(number).resume(returning: response)
    }

    func fail(_ number: Int, with error: any Error) async {
        await take(number).resume(throwing: error)
    }

    private func take(_ number: Int) async -> CheckedContinuation<WorkerTokens.Response, any Error> {
        await state.wait { state in state.pending.contains { $0.number == number } }
        return state.change { state in
            let index = state.pending.firstIndex { $0.number == number }
            return state.pending.remove(at: index ?? 0).response
        }
    }

    private func receive(_ request: WorkerTokens.Request) async throws -> WorkerTokens.Response {
        try await withCheckedThrowingContinuation { response in
            state.change { state in
                state.requests.append(request)
                state.pending.append(Pending(number: state.requests.count, response: response))
            }
        }
    }

    static func token(_ value: String, expiresIn seconds: Int = 3599, warning: String? = nil) -> WorkerTokens.Response {
        let warning = warning.map { #""\#($0)""# } ?? "null"
        return response(
            200,
            """
            {"access_token":"\(value)","token_type":"Bearer","expires_in":\(seconds),\
            "expires_at":"2026-11-21T09:00:00Z","granted_scopes":["openid"],"warning":\(warning)}
            """
        )
    }

    static func response(_ status: Int, _ body: String, retryAfter: String? = nil) -> WorkerTokens.Response {
        WorkerTokens.Response(status: status, retryAfter: retryAfter, body: Array(body.utf8))
    }
}
