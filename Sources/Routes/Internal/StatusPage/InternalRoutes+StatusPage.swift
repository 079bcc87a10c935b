import HTTPServer

/// The routes of the status page, for people with a browser.
extension InternalRoutes {
    static let usersPath = "/users"

    var statusPageRoutes: [Route] {
        [
            Route("GET", "/") { request, _ in .respond(await page(for: request)) },
            Route("GET", Self.usersPath) { request, _ in .respond(await user(for: request)) },
        ]
    }

    private func page(for request: ServerRequest) async -> ServerResponse {
        guard maySeeDetails(request) else { return StatusPageRefusal.unauthorized.response }
        return await statusPage.page()
    }

    private func user(for request: ServerRequest) async -> ServerResponse {
        guard let lookup else { return StatusPageRefusal.noServices.response }
        do throws(StatusPageRefusal) {
            return await statusPage.page(showing: try await lookup.answer(request))
        } catch {
            return error.response
        }
    }
}
