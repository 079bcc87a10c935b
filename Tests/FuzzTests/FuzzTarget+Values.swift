import Base
import Foundation

@testable import Crypto
@testable import GoogleOAuth
@testable import HTTPClient
@testable import Scheduler

/// JSON, and the answers of Google's endpoints.
extension FuzzTarget {
    static let values: [FuzzTarget] = [
        FuzzTarget(name: "json", run: readJSON),
        FuzzTarget(name: "verdict", run: readVerdict),
        FuzzTarget(name: "proof_response", run: readProofResponse),
        FuzzTarget(name: "accounts", run: readAccountAnswers),
        FuzzTarget(name: "health", run: readHealth),
        FuzzTarget(name: "traceparent", run: readTraceparent),
    ]

    private static func readTraceparent(_ input: [UInt8]) {
        let text = String(decoding: input, as: UTF8.self)
        guard let context = TraceContext(traceparent: text) else { return }
        let ids = "\(context.traceID.text)-\(context.spanID.text)"
        require(text.dropFirst(3).hasPrefix(ids), "the ids are read as they were sent")
        require(context.traceID.text.contains { $0 != "0" }, "a trace has an id")
        require(context.spanID.text.contains { $0 != "0" }, "a span has an id")
        require(TraceContext(traceparent: context.traceparent) == context, "it is read as it is passed on")
    }

    private static let sent = "1//0gSentRefreshToken-AbCdEfGhIjKlMnOpQrStUvWxYz"
    private static let statuses = [200, 400, 401, 403, 404, 408, 429, 500, 503, 301, 204]

    private static func readJSON(_ input: [UInt8]) {
        guard case .success(let value) = Result(catching: { () throws(FormatError) in try JSONValue.parse(input) })
        else {
            return
        }
        visit(value)
        // Foundation is the reference: a text that is JSON here is JSON there too, unless a number is too large for it.
        let isJSON = (try? JSONSerialization.jsonObject(with: Data(input), options: .fragmentsAllowed)) != nil
        let mayDiffer = input.contains(UInt8(ascii: "e")) || input.contains(UInt8(ascii: "E")) || input.count > 300
        require(isJSON || mayDiffer, "Foundation refuses what was parsed as JSON")
    }

    private static func visit(_ value: JSONValue) {
        _ = value.integer
        for element in value.array ?? [] { visit(element) }
        for (_, member) in value.object ?? [:] { visit(member) }
    }

    /// The first byte selects the status; the rest is the body.
    private static func readVerdict(_ input: [UInt8]) {
        guard let first = input.first else { return }
        let status = statuses[Int(first) % statuses.count]
        let body = Array(input.dropFirst())
        let response = HTTPResponse(
            status: status,
            body: HTTPBody(body),
            isHTTP2: true,
            newConnection: false,
            head: HTTPBody(Array("HTTP/2 \(status)\r\nRetry-After: ".utf8) + body.prefix(32) + Array("\r\n\r\n".utf8))
        )
        let answer = ParsedRefreshResponse.reading(response, sent: [Secret(sent)])
        require((answer.text?.utf8.count ?? 0) <= 256, "the excerpt is short")
        require(!(answer.text ?? "").contains(sent), "the excerpt does not contain the token that was sent")
        require(!answer.verdict.code.contains(sent), "the code does not contain the token that was sent")
        switch answer.verdict {
        case .granted(let tokens):
            require(status == 200, "only status 200 grants")
            require(!tokens.accessToken.isEmpty, "a granted access token is not empty")
            require(tokens.lifetime > .zero && tokens.lifetime <= .seconds(400 * 86_400), "the lifetime is bounded")
        case .failed(.invalidGrant):
            let said = JSONValue.object(in: body)?["error"]?.string.map(ErrorCodeReader.bare)
            require([400, 401, 403].contains(status) && said == "invalid_grant", "only invalid_grant ends a grant")
        default:
            break
        }
        if let retryAfter = answer.retryAfter { require(retryAfter >= .zero, "a pause is not negative") }
    }

    private static let prover = made {
        Prover(endpoint: try Endpoint("https://oauth2.googleapis.com/token"), time: SystemTime())
    }
    private static let subject = made {
        let key = try BindingKey(id: .random(), scalar: P256PrivateKey.randomScalar())
        return ProofSubject(refreshingWith: key, clientID: "client")
    }

    /// The response to a request with a proof: the headers, an empty line and the body.
    ///
    /// Whoever answers in Google's place chooses the nonce, which the next proof contains.
    private static func readProofResponse(_ input: [UInt8]) {
        let end = input.firstRange(of: Array("\r\n\r\n".utf8))?.lowerBound ?? input.endIndex
        let response = HTTPResponse(
            status: 400,
            body: HTTPBody(Array(input[end...].dropFirst(4))),
            isHTTP2: true,
            newConnection: false,
            head: HTTPBody(Array("HTTP/2 400\r\n".utf8) + input[..<end] + Array("\r\n\r\n".utf8))
        )
        let second = prover.read(response, isAnswerToChallenge: true, sent: [Secret(sent)])
        guard case .response(let parsed) = second else { fatalError("violated: a second challenge is not answered") }
        require(!(parsed.text ?? "").contains(sent), "the text does not contain the token that was sent")
        let first = prover.read(response, isAnswerToChallenge: false, sent: [Secret(sent)])
        guard case .challenge(let nonce) = first else { return }
        guard case .failed(.proofRefused(code: "use_dpop_nonce")) = parsed.verdict else {
            fatalError("violated: only a challenge is answered")
        }
        let bytes = nonce.text.utf8
        require((1...ProofNonce.maximumLength).contains(bytes.count), "a nonce is bounded")
        require(bytes.allSatisfy { (0x21...0x7e).contains($0) && $0 != 0x22 && $0 != 0x5c }, "a nonce is NQCHAR")
        prover.keepNonce(of: response, for: subject)
        let pattern = prover.pattern(proving: subject)
        require(pattern.isSendable, "the next request can be sent")
        guard let proof = pattern.headers.last?.1.split(separator: "."), proof.count == 3 else {
            fatalError("violated: a proof has three parts")
        }
        let claims = Base64URL.decode(proof[1]).flatMap { JSONValue.object(in: $0) }
        require(claims?["nonce"] == .string(nonce.text), "the next proof has the nonce as it came")
    }

    private static func readAccountAnswers(_ input: [UInt8]) {
        guard let body = JSONValue.object(in: input) else { return }
        if let user = UserInfo(body) {
            require((1...255).contains(user.googleUserID.utf8.count), "a Google user id has 1 to 255 bytes")
        }
        _ = TokenInfo(body)
    }

    /// The health of a client as stored in the database.
    ///
    /// Any stored text can be read and written again.
    private static func readHealth(_ input: [UInt8]) {
        let health = ClientHealth(stored: input, epoch: "boot")
        let again = ClientHealth(stored: health.stored, epoch: "boot")
        require(again.stored == health.stored, "a record that was written reads back the same")
    }
}
