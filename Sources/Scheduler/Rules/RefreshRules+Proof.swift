import GoogleOAuth
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
        let refusal = ProofRefusal(code: code)
        let reason = refusal.isOfClock ? GrantReason.clockWrong : GrantReason(rawValue: code)
        var decision = retry(reason, in: context)
        guard context.grant.refreshToken?.bindingKeyID != nil else {
            decision.alarm = RefreshDecision.Alarm(kind: .proofRefused, text: missingProof(code))
            return decision
        }
        // One refused nonce can mean that a server of Google has just started.
        let wasRefusedBefore = context.grant.reason == reason
        if refusal.isOfNonce, !wasRefusedBefore { return decision }
        let text = refusedProof(context.result.text ?? code, advice: refusal.advice)
        decision.alarm = RefreshDecision.Alarm(kind: .proofRefused, text: text)
        return decision
    }

    private func refusedProof(_ text: String, advice: String) -> String {
        """
        the token endpoint refuses the proofs for bound refresh tokens (\(text)): \(advice); no grant ends because of \
        it, but access tokens expire
        """
    }

    private func missingProof(_ code: String) -> String {
        """
        the token endpoint wants proofs for refresh tokens that this worker has not bound (\(code)): their app has bound \
        them to a key of its own, so nobody else can refresh them
        """
    }
}
