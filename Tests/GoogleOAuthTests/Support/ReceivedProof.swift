import Foundation
import TestSupport

@testable import Base
@testable import Crypto

/// The proof of a request that a server has received.
struct ReceivedProof {
    let header: JSONValue
    let claims: JSONValue
    /// `true` if the key in the header has signed it.
    let isSigned: Bool

    /// Returns `nil` for a request without a proof.
    init?(of request: ScriptedServer.Received) {
        let lines = request.head.components(separatedBy: "\r\n").filter { $0.lowercased().hasPrefix("dpop:") }
        guard lines.count == 1 else { return nil }
        let text = String(lines[0].dropFirst("dpop:".count)).trimmingCharacters(in: .whitespaces)
        let parts = text.split(separator: ".")
        guard parts.count == 3, let headerBytes = Base64URL.decode(parts[0]),
            let claimBytes = Base64URL.decode(parts[1]),
            let header = JSONValue.object(in: headerBytes), let claims = JSONValue.object(in: claimBytes),
            let x = header["jwk"]?["x"]?.string.flatMap({ Base64URL.decode($0) }),
            let y = header["jwk"]?["y"]?.string.flatMap({ Base64URL.decode($0) })
        else { return nil }
        self.header = header
        self.claims = claims
        do {
            isSigned = try SignedToken(text).verifies(with: try PublicKey(x: x, y: y))
        } catch {
            isSigned = false
        }
    }

    var nonce: String? { claims["nonce"]?.string }
    var id: String? { claims["jti"]?.string }
}
