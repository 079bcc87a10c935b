/// A proof that the token endpoint does not accept, and where to look for the cause.
package struct ProofRefusal: Hashable, Sendable {
    /// The code for a proof whose nonce is missing, old or changed (RFC 9449, section 8).
    package static let nonceCode = "use_dpop_nonce"
    /// The code for an `invalid_grant` that a wrong clock of this machine can have caused.
    package static let clockCode = "clock_wrong"

    package let code: String

    package init(code: String) {
        self.code = code
    }

    package var isOfNonce: Bool { code == Self.nonceCode }
    package var isOfClock: Bool { code == Self.clockCode }

    /// What an operator should look at.
    ///
    /// A refused nonce says nothing about the clock or the key: it came from the endpoint a moment before.
    package var advice: String {
        if isOfNonce {
            return "look for a proxy between this worker and Google that drops or changes the header DPoP-Nonce"
        }
        return "look at this machine's clock, and then at the key ring"
    }
}
