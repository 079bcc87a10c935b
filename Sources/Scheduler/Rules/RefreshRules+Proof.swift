import Storage
import Telemetry

/// The rule about proofs that the endpoint does not accept.
extension RefreshRules {
    /// Tries the grant again.
    ///
    /// A refused proof never ends a grant: the user has not ended it, and signing in again would not help.
    ///
    /// Example: the machine's clock is ten minutes ahead, and Google refuses each proof. Once the clock is right, the
    /// next try works.
    func decideProofRefused(_ code: String, in context: DecisionContext) -> RefreshDecision {
        var decision = retry(GrantReason(rawValue: code), in: context)
        let isBound = context.grant.refreshToken?.bindingKeyID != nil
        // One refused nonce can mean that a server of Google has just started. After another failure, it might be a
        // proxy that changes the nonces.
        if isBound, code == "use_dpop_nonce", context.grant.failures == 0 { return decision }
        decision.alarm = RefreshDecision.Alarm(
            kind: .proofRefused,
            text: isBound ? refusedProof(context.result.text ?? code) : missingProof(code)
        )
        return decision
    }

    private func refusedProof(_ text: String) -> String {
        """
        the token endpoint refuses the proofs for bound refresh tokens (\(text)): look at this machine's clock, and then \
        at the key ring; no grant ends because of it, but access tokens expire
        """
    }

    private func missingProof(_ code: String) -> String {
        """
        the token endpoint wants proofs for refresh tokens that this worker has not bound (\(code)): their app has bound \
        them to a key of its own, so nobody else can refresh them
        """
    }
}
