internal import Base
internal import Crypto
internal import HTTPClient
private import Synchronization

/// Makes the proofs of requests to the token endpoint (RFC 9449), and keeps the nonces that they must contain.
///
/// The nonces stay in memory: each worker has its own, and a new one is asked for its first.
final class Prover: Sendable {
    /// The difference between two clocks that a server tolerates for sure.
    private static let tolerableDifference: Duration = .seconds(60)

    /// The code of an `invalid_grant` that a wrong clock can have caused.
    private static let clockCode = "clock_wrong"

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

    /// Makes the pattern of one request with a proof, which has the nonce of a challenge, or else the last known one.
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

    /// `true` if the response might be about the proof. Any other one says nothing about it.
    static func mayConcernProof(_ response: HTTPResponse) -> Bool { [400, 401].contains(response.status) }

    /// What the response to a request with a proof means.
    enum Reading {
        /// The endpoint wants the request again, with this nonce in its proof. It has not processed it.
        case challenge(ProofNonce, ParsedRefreshResponse)
        case response(ParsedRefreshResponse)

        /// The response, also if it is a challenge that is not answered any more.
        var parsed: ParsedRefreshResponse {
            switch self {
            case .challenge(_, let parsed), .response(let parsed): parsed
            }
        }
    }

    /// Reads a response, and says so if this machine's clock can be why its proof was refused.
    func read(_ response: HTTPResponse, sent: [Secret]) -> Reading {
        var parsed = ParsedRefreshResponse.reading(.unread(.success(response)), sent: sent)
        let clock = clockProblem(in: response)
        // Google says that a proof can also fail with invalid_grant. While the clock is wrong, that ends nobody.
        if case .failed(.invalidGrant) = parsed.verdict, clock != nil {
            parsed.verdict = .failed(.proofRefused(code: Self.clockCode))
        }
        guard case .failed(.proofRefused(let code)) = parsed.verdict else { return .response(parsed) }
        if let clock {
            // First, because the rest of a long text is cut off.
            parsed.text = [clock, parsed.text].compactMap(\.self).joined(separator: "; ")
        }
        guard code == "use_dpop_nonce", let nonce = ProofNonce(of: response) else { return .response(parsed) }
        return .challenge(nonce, parsed)
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
