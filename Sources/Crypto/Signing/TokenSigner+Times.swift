package import Base

extension TokenSigner {
    /// The tolerated clock difference to other machines.
    private static let leeway = Duration.seconds(60)
    /// The tolerated lead of `iat`.
    ///
    /// It is larger than `leeway` because only `nbf` forbids use (RFC 7519, section 4.1.5): if a clock that was
    /// somewhat ahead is corrected, users whose tokens it made must not be signed out. A larger lead means a forged
    /// token or a broken clock, and such a token would outlive its lifetime.
    private static let issueLeeway = Duration.seconds(3600)

    /// Returns `true` if the claims are valid at this time.
    package static func areTimely(_ claims: JSONValue, at now: Timestamp) -> Bool {
        do throws(CryptoError) {
            try checkTimes(of: claims, at: now)
            return true
        } catch {
            return false
        }
    }

    static func checkTimes(of claims: JSONValue, at now: Timestamp) throws(CryptoError) {
        guard let expiry = claims["exp"]?.finiteNumber else { throw .noExpiry }
        guard Double(now.milliseconds) / 1000 < expiry else { throw .expired }
        for (name, leeway) in [("nbf", leeway), ("iat", issueLeeway)] {
            guard let claim = claims[name] else { continue }
            guard let start = claim.finiteNumber else { throw .malformed }
            guard start <= Double((now + leeway).milliseconds) / 1000 else { throw .notYetValid }
        }
    }
}

extension JSONValue {
    /// The value of a NumericDate, which can have a fraction (RFC 7519, section 2).
    fileprivate var finiteNumber: Double? {
        guard case .number(let text) = self, let number = Double(text), number.isFinite else { return nil }
        return number
    }
}
