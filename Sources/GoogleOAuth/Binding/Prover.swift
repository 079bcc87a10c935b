internal import Base
internal import Crypto
internal import HTTPClient
private import Synchronization

/// Makes the proofs of requests to the token endpoint (RFC 9449), and keeps the nonces that they must contain.
///
/// The nonces stay in memory. A worker that has just started has none, so the endpoint challenges its first proof.
final class Prover: Sendable {
    /// A clock that is less wrong than this is not named as the cause of a refusal.
    ///
    /// By RFC 9449, section 11.1, servers accept a proof for some seconds or minutes. Google's limit is not known.
    private static let tolerableDifference: Duration = .seconds(60)

    private struct NonceKey: Hashable {
        let clientID: String
        let purpose: ProofSubject.Purpose

        init(_ subject: ProofSubject) {
            clientID = subject.clientID
            purpose = subject.purpose
        }
    }

    private let endpoint: Endpoint
    /// This machine's clock.
    private let time: any TimeSource
    private let random: any RandomSource
    private let nonces = Mutex<[NonceKey: ProofNonce]>([:])

    init(endpoint: Endpoint, time: any TimeSource, random: any RandomSource = SystemRandom()) {
        self.endpoint = endpoint
        self.time = time
        self.random = random
    }

    // MARK: Requests

    /// Makes the pattern of one request with a new proof.
    ///
    /// The proof has the nonce of the challenge, or without one the last known nonce, if there is any.
    func pattern(proving subject: ProofSubject, answering challenge: ProofNonce? = nil) -> RequestPattern {
        let nonce = challenge ?? nonces.withLock { $0[NonceKey(subject)] }
        var claims = JSONLine()
        claims.field("htm", RequestPattern.Method.post.rawValue)
        claims.field("htu", endpoint.urlWithoutQuery)
        claims.field("iat", time.now.milliseconds / 1000)
        claims.field("jti", subject.proofID ?? newProofID())
        if let nonce { claims.field("nonce", nonce.text) }
        return .form(to: endpoint, proof: subject.key.proof(claims))
    }

    private func newProofID() -> String {
        "\(String(random.nextBits(), radix: 36))-\(String(random.nextBits(), radix: 36))"
    }

    // MARK: Responses

    /// Keeps the nonce of a response for the next proof.
    func keepNonce(of response: HTTPResponse, for subject: ProofSubject) {
        guard let nonce = ProofNonce(of: response) else { return }
        nonces.withLock { $0[NonceKey(subject)] = nonce }
    }

    /// `true` if the response might be about the proof: only these statuses have the errors of RFC 9449, or an
    /// `invalid_grant`.
    static func mayConcernProof(_ response: HTTPResponse) -> Bool { [400, 401].contains(response.status) }

    /// What the response to a request with a proof means.
    enum Reading {
        /// The endpoint wants the request again, with this nonce in its proof. It has not processed it.
        case challenge(ProofNonce)
        case response(ParsedRefreshResponse)
    }

    /// Reads a response. If the proof was refused and this machine's clock is wrong, the text says so.
    ///
    /// One challenge is answered. A second one is the response, a fault that might pass: an endpoint that accepts no
    /// nonce would get requests without end.
    func read(_ response: HTTPResponse, isAnswerToChallenge: Bool, sent: [Secret]) -> Reading {
        var parsed = ParsedRefreshResponse.reading(.unread(.success(response)), sent: sent)
        let clock = clockProblem(in: response)
        // Google says that it can also refuse a proof with invalid_grant. A wrong clock must end no grant.
        if case .failed(.invalidGrant) = parsed.verdict, clock != nil {
            parsed.verdict = .failed(.proofRefused(code: ProofRefusal.clockCode))
        }
        guard case .failed(.proofRefused(let code)) = parsed.verdict else { return .response(parsed) }
        if let clock {
            // The clock comes first, because a long text is cut off at its end.
            parsed.text = [clock, parsed.text].compactMap(\.self).joined(separator: "; ")
        }
        guard !isAnswerToChallenge, ProofRefusal(code: code).isOfNonce, let nonce = ProofNonce(of: response) else {
            return .response(parsed)
        }
        return .challenge(nonce)
    }

    private func clockProblem(in response: HTTPResponse) -> String? {
        guard let header = response.header("Date"), let date = Timestamp(httpDate: header) else { return nil }
        let now = time.now
        let (difference, word) = date > now ? (date - now, "behind") : (now - date, "ahead of")
        guard difference > Self.tolerableDifference else { return nil }
        return "this machine's clock is \(difference.inTwoUnits) \(word) the endpoint's: set it right"
    }
}

extension RequestPattern {
    /// Makes the pattern of a form POST with a proof, for one request.
    ///
    /// Neither side keeps its fields for later requests, because the proof differs in each.
    fileprivate static func form(to endpoint: Endpoint, proof: String) -> RequestPattern {
        RequestPattern(
            method: .post,
            endpoint: endpoint,
            headers: [("Content-Type", FormBody.contentType), ("Accept", "application/json"), ("DPoP", proof)],
            isSecret: true
        )
    }
}
