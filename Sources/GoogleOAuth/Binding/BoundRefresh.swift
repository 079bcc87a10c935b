internal import Base
internal import Crypto
internal import HTTPClient
private import Synchronization

/// A refresh with a bound token: a request with a proof, and a second one if the endpoint asks for a nonce.
///
/// Both are one attempt under one lease. The caller gets only the last response: the endpoint has not processed a
/// request that it answers with a challenge.
final class BoundRefresh: Sendable {
    private struct State {
        /// The refresh until its end. Then it goes away with its token.
        var submission: RefreshSubmission?
        var transfer: HTTPTransfer?
        var isCancelled = false
    }

    private let subject: ProofSubject
    private let http: HTTPClient
    private let prover: Prover
    private let state: Mutex<State>

    init(_ submission: RefreshSubmission, boundTo key: BindingKey, http: HTTPClient, prover: Prover) {
        subject = ProofSubject(refreshingWith: key, clientID: submission.client.id)
        self.http = http
        self.prover = prover
        state = Mutex(State(submission: submission))
    }

    /// Returns the first request, or `nil` if the refresh was cancelled before.
    func begin() -> HTTPTransfer? {
        transfer { [self] reading in
            guard case .challenge(let nonce, _) = reading else { return end(.read(reading.parsed)) }
            // A second challenge is not answered. It is the result, a fault that might pass.
            guard let second = transfer(answering: nonce, onRefusal: { [self] in end(.read($0.parsed)) }) else {
                return
            }
            http.submit([second])
        }
    }

    func cancel() {
        let transfer = state.withLock { state in
            state.isCancelled = true
            return state.transfer
        }
        if let transfer { http.cancel(transfer) }
    }

    /// Makes a request, or ends the refresh and returns `nil` if it was cancelled.
    ///
    /// `onRefusal` gets a 400 or 401, which might be about the proof. It is called in a task, and not on the HTTP
    /// client's thread.
    private func transfer(
        answering challenge: ProofNonce? = nil,
        onRefusal: @escaping @Sendable (Prover.Reading) -> Void
    ) -> HTTPTransfer? {
        guard let submission = state.withLock(\.submission) else { return nil }
        let pattern = prover.pattern(proving: subject, answering: challenge)
        let transfer = HTTPTransfer(
            HTTPRequest(refreshing: submission.token, client: submission.client, pattern: pattern),
            beforeSend: submission.mayStillSend
        ) { [self] result in receive(result, onRefusal: onRefusal, sent: submission.secrets) }
        let isCancelled = state.withLock { state in
            state.transfer = transfer
            return state.isCancelled
        }
        guard !isCancelled else {
            end(.read(ParsedRefreshResponse(verdict: .failed(.notSent(code: "cancelled")))))
            return nil
        }
        return transfer
    }

    /// Takes a response on the HTTP client's thread, which has no time to read it or to sign.
    private func receive(
        _ result: Result<HTTPResponse, HTTPError>,
        onRefusal: @escaping @Sendable (Prover.Reading) -> Void,
        sent: [Secret]
    ) {
        guard case .success(let response) = result else { return end(.unread(result)) }
        prover.keepNonce(of: response, for: subject)
        guard Prover.mayConcernProof(response) else { return end(.unread(result)) }
        Task { onRefusal(prover.read(response, sent: sent)) }
    }

    private func end(_ response: RefreshResponse) {
        let submission = state.withLock { state in
            defer {
                state.submission = nil
                state.transfer = nil
            }
            return state.submission
        }
        submission?.receive(response)
    }
}

extension RefreshSubmission {
    /// The secrets that a text in the response must not repeat.
    fileprivate var secrets: [Secret] { [token] + [client.secret].compactMap(\.self) }
}
