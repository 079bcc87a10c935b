internal import Base
package import HTTPClient
internal import Telemetry

/// Where the worker sends its telemetry, and how it names itself there: the worker's own setting, and the variables that
/// all programs with OpenTelemetry share (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables).
///
/// The shared variables are often set for a whole machine or cluster, with other programs in mind. So one that the
/// worker cannot use is a problem to report, and no reason not to refresh tokens.
package struct OpenTelemetrySettings: Sendable {
    package struct Problem: Equatable, Sendable {
        package let variable: String
        package let message: String
    }

    /// The pause between two requests with metrics, as in OpenTelemetry's own libraries.
    package static let defaultMetricsInterval: Duration = .seconds(60)
    private static let metricsIntervals = 1_000...86_400_000

    /// `nil` if metrics are not sent.
    package private(set) var metricsEndpoint: Endpoint?
    /// `nil` if spans are not sent.
    package private(set) var tracesEndpoint: Endpoint?
    package private(set) var headers: [CollectorHeader] = []
    package private(set) var serviceName: String?
    package private(set) var resourceAttributes: [Attribute] = []
    package private(set) var metricsInterval = Self.defaultMetricsInterval
    package private(set) var problems: [Problem] = []

    package var sendsAnything: Bool { metricsEndpoint != nil || tracesEndpoint != nil }

    /// Reads the settings. `endpoint` is the value of `--otlp-endpoint`, which precedes every shared variable.
    package init(endpoint: Endpoint?, environment: [String: String]) {
        let variables = environment.filter { $0.key.hasPrefix("OTEL_") && !$0.value.isEmpty }
        guard variables["OTEL_SDK_DISABLED"]?.lowercased() != "true" else { return }
        metricsEndpoint = self.endpoint(of: .metrics, below: endpoint, variables)
        tracesEndpoint = self.endpoint(of: .traces, below: endpoint, variables)
        guard sendsAnything || !problems.isEmpty else { return }
        serviceName = variables["OTEL_SERVICE_NAME"]
        resourceAttributes = pairs("OTEL_RESOURCE_ATTRIBUTES", variables).map { pair in
            Attribute(pair.name, .text(pair.value))
        }
        readHeaders(variables)
        readMetricsInterval(variables)
    }

    /// Returns the endpoint of a signal: below the worker's own setting, as the variable of the signal has it, or below
    /// the variable for all signals.
    private mutating func endpoint(
        of signal: TelemetrySignal,
        below own: Endpoint?,
        _ variables: [String: String]
    ) -> Endpoint? {
        let exporters = variables["OTEL_\(signal.rawValue.uppercased())_EXPORTER"] ?? "otlp"
        guard Self.names(exporters).contains("otlp") else { return nil }
        let path = "v1/\(signal.rawValue)"
        if let own { return read("--otlp-endpoint") { () throws(FormatError) in try own.below(path) } }
        let exact = "OTEL_EXPORTER_OTLP_\(signal.rawValue.uppercased())_ENDPOINT"
        if let url = variables[exact] { return read(exact) { () throws(FormatError) in try Endpoint(url) } }
        let shared = "OTEL_EXPORTER_OTLP_ENDPOINT"
        guard let url = variables[shared] else { return nil }
        guard !url.contains("?") else {
            report(shared, "it has a query, which the paths of metrics and traces cannot follow")
            return nil
        }
        return read(shared) { () throws(FormatError) in try Endpoint(url).below(path) }
    }

    private static func names(_ list: String) -> [String] {
        list.split(separator: ",").map { String(decoding: $0.utf8.trimmingBlanks, as: UTF8.self) }
    }

    private mutating func pairs(_ variable: String, _ variables: [String: String]) -> [KeyValueList.Pair] {
        guard let text = variables[variable] else { return [] }
        return read(variable) { () throws(FormatError) in try KeyValueList.parse(text) } ?? []
    }

    private mutating func readHeaders(_ variables: [String: String]) {
        let variable = "OTEL_EXPORTER_OTLP_HEADERS"
        for pair in pairs(variable, variables) {
            guard pair.name.isHeaderName, pair.value.isHeaderValue else {
                report(variable, "a header has a character that cannot be sent")
                continue
            }
            headers.append(CollectorHeader(name: pair.name, value: pair.value))
        }
    }

    private mutating func readMetricsInterval(_ variables: [String: String]) {
        let variable = "OTEL_METRIC_EXPORT_INTERVAL"
        guard let text = variables[variable] else { return }
        guard text.isDecimalNumber, let number = Int(text), Self.metricsIntervals.contains(number) else {
            let (least, most) = (Self.metricsIntervals.lowerBound, Self.metricsIntervals.upperBound)
            return report(variable, "not a whole number of milliseconds from \(least) to \(most)")
        }
        metricsInterval = .milliseconds(number)
    }

    private mutating func read<Value>(_ variable: String, _ body: () throws(FormatError) -> Value) -> Value? {
        do throws(FormatError) {
            return try body()
        } catch {
            report(variable, "\(error)")
            return nil
        }
    }

    private mutating func report(_ variable: String, _ message: String) {
        let problem = Problem(variable: variable, message: message)
        if !problems.contains(problem) { problems.append(problem) }
    }
}
