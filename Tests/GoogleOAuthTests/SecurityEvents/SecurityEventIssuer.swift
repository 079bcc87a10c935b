import Crypto
import Dispatch
import HTTPClient
import Synchronization
import TestSupport

@testable import Base
@testable import GoogleOAuth

/// A fake issuer of security events: it publishes keys over a socket and signs tokens.
final class SecurityEventIssuer: Sendable {
    static let name = "https://accounts.google.com/"
    static let clientID = "1234-abc.apps.googleusercontent.com"

    private struct State {
        var keys: [(id: String, key: RSAPrivateKey)] = []
        var isUnavailable = false
        var gate: DispatchSemaphore?
        var cacheControl = ""
        var jwksURI: String?
    }

    let time = ManualTime()
    private let state = Mutex(State())
    private let serverBox = Mutex<ScriptedServer?>(nil)
    let http: HTTPClient

    init() throws {
        http = try HTTPClient()
        let server = try ScriptedServer { [weak self] request in self?.answer(request) ?? [.close] }
        serverBox.withLock { $0 = server }
        try addKey("key-1")
    }

    var server: ScriptedServer {
        get throws {
            guard let server = serverBox.withLock({ $0 }) else { throw CancellationError() }
            return server
        }
    }

    func stop() throws {
        try server.stop()
        http.shutDown()
    }

    func addKey(_ id: String) throws {
        let key = try TestKeys.key(state.withLock { $0.keys.count })
        state.withLock { $0.keys.append((id, key)) }
    }

    func setUnavailable(_ isUnavailable: Bool) { state.withLock { $0.isUnavailable = isUnavailable } }
    /// Lets each request wait for a signal, or none.
    func hold(until gate: DispatchSemaphore?) { state.withLock { $0.gate = gate } }
    func setCacheControl(_ value: String) { state.withLock { $0.cacheControl = "Cache-Control: \(value)\r\n" } }
    func setKeyAddress(_ address: String) { state.withLock { $0.jwksURI = address } }

    /// The number of requests for the key set.
    var fetches: Int {
        get throws { try server.received.count { $0.head.hasPrefix("GET /certs ") } }
    }

    func keys() throws -> KeySetCache {
        let endpoint = try Endpoint("http://127.0.0.1:\(server.port)/risc-configuration")
        return KeySetCache(.configuration(endpoint), http: http, time: time)
    }

    func reader() throws -> SecurityEventReader {
        SecurityEventReader(keys: try keys(), clientIDs: { [Self.clientID, "other.apps"] }, time: time)
    }

    /// Makes a token with these claims, signed by the given key or by the newest one.
    func token(_ claims: (inout JSONLine) -> Void, keyID: String? = nil, key: RSAPrivateKey? = nil) throws -> [UInt8] {
        var line = JSONLine()
        claims(&line)
        let newest = state.withLock { $0.keys.last }
        guard let signer = key ?? newest?.key else { throw CancellationError() }
        let assertion = try signer.signedToken(line, keyID: keyID ?? newest?.id ?? "", type: "secevent+jwt")
        return Array(assertion.reveal().utf8)
    }

    /// The claims of a valid token with one event.
    func goodClaims(_ type: String = SecurityEvent.EventType.verification, _ line: inout JSONLine) {
        line.field("iss", Self.name)
        line.field("aud", Self.clientID)
        line.field("iat", time.now.milliseconds / 1000)
        line.field("jti", "jti-1")
        line.object("events") { events in events.object(type) { $0.field("state", "s") } }
    }

    func goodToken(keyID: String? = nil, key: RSAPrivateKey? = nil) throws -> [UInt8] {
        try token({ goodClaims(SecurityEvent.EventType.verification, &$0) }, keyID: keyID, key: key)
    }

    private func answer(_ request: ScriptedServer.Received) -> [ScriptedServer.Step] {
        let state = state.withLock { $0 }
        state.gate?.wait()
        guard !state.isUnavailable, let port = serverBox.withLock({ $0?.port }) else {
            return TestSupport.answer("", status: "503 Service Unavailable")
        }
        if request.head.hasPrefix("GET /risc-configuration ") {
            let address = state.jwksURI ?? "http://127.0.0.1:\(port)/certs"
            return TestSupport.answer(#"{"issuer":"\#(Self.name)","jwks_uri":"\#(address)"}"#)
        }
        let entries = state.keys.compactMap { id, key -> String? in
            guard case .success(let numbers) = Result(catching: { try key.publicNumbers() }) else { return nil }
            let modulus = Base64URL.encode(numbers.modulus)
            return #"{"kty":"RSA","alg":"RS256","use":"sig","kid":"\#(id)","n":"\#(modulus)","e":"AQAB"}"#
        }
        let others = #"{"kty":"EC","kid":"ec"},{"kty":"RSA","kid":"small","n":"AQAB","e":"AQAB"},7"#
        return TestSupport.answer(
            #"{"keys":[\#(others),\#(entries.joined(separator: ","))]}"#,
            headers: state.cacheControl
        )
    }
}
