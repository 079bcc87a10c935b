internal import GoogleOAuth

/// The exchange of the app's codes by the client that is configured now.
struct CodeExchanger: Sendable {
    let exchanges: CodeExchanges
    let client: OAuthClientCredentials
}

extension AppRoutes.Dependencies {
    /// The exchange of the app's codes. Throws if no client for it is configured.
    var codeExchanger: CodeExchanger {
        get throws(AppError) {
            guard let exchanges, let client = exchanges.client() else { throw .noServerClient }
            return CodeExchanger(exchanges: exchanges, client: client)
        }
    }
}
