private import Base
internal import HTTPServer

/// The control routes.
extension Sandbox {
    func control(_ request: ServerRequest) async -> ServerResponse {
        do throws(ControlError) {
            switch (request.method, request.path) {
            case ("GET", "/control/grants"):
                return .json(withState { $0.grantList }.text)
            case ("GET", "/control/settings"):
                return .json(withState { $0.settings }.json.text)
            case ("GET", "/control/faults"):
                return .json(OrderedJSON.array(SandboxFault.names.map(OrderedJSON.string)).text)
            case ("GET", "/control/stats"):
                let withGrants = request.queryValue("grants") == "1"
                return .json(withState { $0.statisticsJSON(withGrants: withGrants) }.text)
            case ("GET", "/control/wait"):
                return try await wait(request)
            case ("POST", _):
                let result = try change(request)
                stateChanges.notify()
                return .json(result.text)
            default:
                throw ControlError("no such control route", status: 404)
            }
        } catch {
            let body: OrderedJSON = ["error": .string(error.message)]
            return .json(body.text, status: error.status)
        }
    }

    private func change(_ request: ServerRequest) throws(ControlError) -> OrderedJSON {
        guard let body = request.body.isEmpty ? [:] : OrderedJSON.parsed(request.body) else {
            throw ControlError("the body is not JSON")
        }
        if let result = try controlSecurityEvents(request.path, body) { return result }
        let now = time.now
        return try withState { (state) throws(ControlError) -> OrderedJSON in
            switch request.path {
            case "/control/grants":
                return try state.createGrants(body, now: now)
            case "/control/grants/set":
                return try state.setGrants(body)
            case "/control/settings":
                try state.apply(body)
                return state.settings.json
            case "/control/release":
                return try state.release(body)
            case "/control/reset":
                state.reset()
                withSecurityEvents { $0.deleteStream() }
                return [:]
            default:
                throw ControlError("no such control route", status: 404)
            }
        }
    }

    private func wait(_ request: ServerRequest) async throws(ControlError) -> ServerResponse {
        guard let count = request.queryValue("holding").flatMap({ Int($0) }) else {
            throw ControlError("holding must be a number")
        }
        guard await waitForHolding(count) else { throw ControlError("too few requests on hold", status: 408) }
        let body: OrderedJSON = ["holding": .count(withState { $0.statistics.holding })]
        return .json(body.text)
    }
}
