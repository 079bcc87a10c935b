import HTTPClient
import OpenTelemetry

/// The checks of the collector that gets telemetry. Refreshes do not depend on it, so none of them is a fault.
extension Doctor {
    /// The variables that the daemon would not use.
    var openTelemetryChecks: [Check] {
        context.openTelemetrySettings.problems.map { problem in
            .warning("\(problem.variable): \(problem.message)", advice: "correct it, or nothing is sent for it")
                .named("OpenTelemetry")
        }
    }

    /// Requests without content, which say nothing about this worker.
    var collectorProbes: [Probe] {
        let settings = context.openTelemetrySettings
        return [settings.metricsEndpoint, settings.tracesEndpoint].compactMap(\.self).map { endpoint in
            let request = HTTPRequest(
                method: .post,
                endpoint: endpoint,
                headers: settings.headers.ofRequest,
                body: HTTPBody(Array("{}".utf8))
            )
            return Probe(
                name: "collector",
                endpoint: endpoint,
                request: request,
                judge: { response in Self.collector(endpoint, status: response.status) },
                isVital: false
            )
        }
    }

    /// Judges the response of a collector to a request without content.
    static func collector(_ endpoint: Endpoint, status: Int) -> Check {
        let answer = "\(endpoint) answers \(status)"
        switch status {
        case 200..<300: return .ok("\(answer), as a collector does")
        case 401, 403:
            return .warning("\(answer): it does not accept the worker", advice: "correct OTEL_EXPORTER_OTLP_HEADERS")
        case 404: return .warning("\(answer): its path is wrong", advice: "correct the address")
        case 415:
            return .warning("\(answer): it does not take JSON", advice: "name a collector that takes OTLP as JSON")
        case 300..<400:
            return .warning("\(answer), a redirect, which the worker does not follow", advice: "correct the address")
        default: return .warning("\(answer): it does not work now", advice: "see the collector's log")
        }
    }
}
