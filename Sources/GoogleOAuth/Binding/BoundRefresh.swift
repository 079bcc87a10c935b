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
    func begin() -> HTTPTransfer? { transfer() }

    func cancel() {
        let transfer = state.withLock { state in
            state.isCancelled = true
            return state.transfer
        }
        if let transfer { http.cancel(transfer) }
    }

    /// Makes the first request, or the one that answers a challenge. Ends the refresh and returns `nil` if it was
    /// cancelled.
    private func transfer(answering challenge: ProofNonce? = nil) -> HTTPTransfer? {
        guard let submission = state.withLock(\.submission) else { return nil }
        let isAnswerToChallenge = challenge != nil
        let pattern = prover.pattern(proving: subject, answering: challenge)
        let transfer = HTTPTransfer(
            HTTPRequest(refreshing: submission.token, client: submission.client, pattern: pattern),
            beforeSend: submission.mayStillSend
        ) { [self] result in
            receive(result, isAnswerToChallenge: isAnswerToChallenge, sent: submission.secrets)
        }
        let isCancelled = state.withLock { state in
            state.transfer = transfer
            return state.isCancelled
        }
        guard !isCancelled else {
            end(.read(ParsedRefreshResponse(verdict: .failed(.notSent(code: "cancelled")))))
            return nil
        }
        if isAnswerToChallenge { submission.willAnswerChallenge() }
        return transfer
    }

    /// Takes a response on the HTTP client's thread, which has no time to read it or to sign.
    private func receive(
        _ result: Result<HTTPResponse, HTTPError>,
        isAnswerToChallenge: Bool,
        sent: [Secret]
    ) {
        guard case .success(let response) = result else { return end(.unread(result)) }
        prover.keepNonce(of: response, for: subject)
        guard Prover.mayConcernProof(response) else { return end(.unread(result)) }
        Task { follow(prover.read(response, isAnswerToChallenge: isAnswerToChallenge, sent: sent)) }
    }

    /// Ends the refresh with its response, or sends the request that answers the challenge.
    private func follow(_ reading: Prover.Reading) {
        switch reading {
        case .response(let parsed):
            end(.read(parsed))
        case .challenge(let nonce):
            guard let second = transfer(answering: nonce) else { return }
            http.submit([second])
        }
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
