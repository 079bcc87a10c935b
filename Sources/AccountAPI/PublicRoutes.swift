package import HTTPServer

/// Every route that an app calls, with each family's words for what no route answers.
package struct PublicRoutes: Sendable {
    private let services: AccountServices

    package init(_ services: AccountServices) {
        self.services = services
    }

    /// The families' routes; further ones, such as Google's own, are added by who makes the router.
    package var routes: [Route] {
        PayPulseRoutes(services: services).routes + ComprehensionRoutes(services: services).routes
    }

    package func router(with further: [Route] = []) -> Router {
        Router(
            routes + further,
            unknownPath: { request in
                Self.belongsToComprehensionEngine(request)
                    ? ComprehensionError.unknownPath.response().secured
                    : PayPulseError.unknownPath.response().secured
            },
            wrongMethod: { request, _ in
                Self.belongsToComprehensionEngine(request)
                    ? ComprehensionError.wrongMethod.response().secured
                    : PayPulseError.wrongMethod.response().secured
            }
        )
    }

    private static func belongsToComprehensionEngine(_ request: ServerRequest) -> Bool {
        request.path.hasPrefix("/api/")
    }
}
