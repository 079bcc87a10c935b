extension AccountClient.Connection {
    /// What to tell the user about the account, in a sentence of English, or nil if it works.
    ///
    /// For other languages, or other words, translate ``reason`` and ``state``: the codes stay.
    public var userMessage: String? {
        switch state {
        case "active": nil
        case "retrying": Self.waiting
        case "suspended": message(orElse: Self.blocked)
        default: message(orElse: Self.ended)
        }
    }

    private func message(orElse usual: String) -> String {
        guard let reason, let message = Self.messages[reason] else { return usual }
        return message
    }

    private static let waiting = """
        Google is not answering as usual for this account. It stays connected, and you do not need to do anything.
        """
    private static let ended = "This Google account is no longer connected. Please connect it again."
    private static let expired = "The access to this Google account has expired. Please connect it again."
    private static let withdrawn = "The access was withdrawn in your Google account. Please connect it again."
    private static let blocked = """
        Your organization does not let this app use your Google account. Please ask your administrator.
        """

    /// The sentence for each reason. The reasons are those of docs/services.md, and error codes of Google.
    private static let messages = [
        "invalid_grant": "Google has ended the access to this account. Please connect it again.",
        "answer_lost": "Google has ended the access to this account. Please connect it again.",
        "no_refresh_token": expired,
        "client_mismatch": "This Google account was connected by another app. Please connect it again.",
        "account_mismatch": "Google gave access to another account than this one. Please connect it again.",
        "user_request": "This Google account was disconnected.",
        "account_moved": "This Google account is connected under another entry of your list.",
        "token_revoked": withdrawn,
        "tokens_revoked": withdrawn,
        "account_disabled": "Google has disabled this account. Please recover it at Google, then connect it again.",
        "user_deleted": "Your account was deleted.",
        "forgotten": "This Google account was disconnected long ago. Please connect it again.",
        "invalid_rapt": "Your organization asks you to sign in with Google again. Please connect this account again.",
        "admin_policy_enforced": blocked,
    ]
}
