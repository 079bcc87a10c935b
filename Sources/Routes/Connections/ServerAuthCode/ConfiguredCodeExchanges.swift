internal import GoogleOAuth

/// The exchanges of the app's codes, with the client that is configured now.
struct ConfiguredCodeExchanges: Sendable {
    let exchanges: CodeExchanges
    let client: OAuthClientCredentials
}

extension AppRoutes.Dependencies {
    /// The exchanges of the app's codes. Throws if no client for them is configured.
    var configuredExchanges: ConfiguredCodeExchanges {
        get throws(AppError) {
            guard let exchanges, let client = exchanges.client() else { throw .noServerClient }
            return ConfiguredCodeExchanges(exchanges: exchanges, client: client)
        }
    }
}
