import Clocks
import JSON

extension TokenSigner {
    /// How far another machine's clock may run ahead of this one's.
    private static let leeway = Duration.seconds(60)

    static func checkTimes(of claims: JSONValue, at now: Timestamp) throws(TokenRefusal) {
        guard let expiry = claims["exp"]?.finiteNumber else { throw .noExpiry }
        guard Double(now.milliseconds) / 1000 < expiry else { throw .expired }
        let latest = Double((now + leeway).milliseconds) / 1000
        for name in ["nbf", "iat"] {
            guard let claim = claims[name] else { continue }
            guard let start = claim.finiteNumber else { throw .malformed }
            // Only `nbf` forbids (RFC 7519, section 4.1.5): a clock that was ahead and is set right must not sign everybody
            // out whose tokens it has made.
            guard start <= latest || name == "iat" else { throw .notYetValid }
        }
    }
}

extension JSONValue {
    /// A NumericDate may have a fraction (RFC 7519, section 2).
    fileprivate var finiteNumber: Double? {
        guard case .number(let text) = self, let number = Double(text), number.isFinite else { return nil }
        return number
    }
}
