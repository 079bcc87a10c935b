import Testing

@testable import Base
@testable import HTTPClient
@testable import OpenTelemetry

@Suite("The settings of OpenTelemetry")
struct SettingsTests {
    private func settings(_ endpoint: String? = nil, _ environment: [String: String] = [:]) throws
        -> OpenTelemetrySettings
    {
        OpenTelemetrySettings(endpoint: try endpoint.map { try Endpoint($0) }, environment: environment)
    }

    @Test("send nothing without an endpoint, and then do not judge what is for other programs")
    func off() throws {
        let settings = try settings(nil, ["OTEL_EXPORTER_OTLP_HEADERS": "%", "OTEL_SERVICE_NAME": "other"])
        #expect(!settings.sendsAnything)
        #expect(settings.problems.isEmpty)
    }

    @Test(
        "add the path of each signal to an endpoint for all",
        arguments: ["http://127.0.0.1:4318", "http://127.0.0.1:4318/"]
    )
    func paths(url: String) throws {
        for settings in [try settings(url), try settings(nil, ["OTEL_EXPORTER_OTLP_ENDPOINT": url])] {
            #expect(settings.metricsEndpoint?.url == "http://127.0.0.1:4318/v1/metrics")
            #expect(settings.tracesEndpoint?.url == "http://127.0.0.1:4318/v1/traces")
        }
    }

    @Test("use the endpoint of one signal as it is, and before the one for all")
    func signals() throws {
        let settings = try settings(
            nil,
            [
                "OTEL_EXPORTER_OTLP_ENDPOINT": "https://all.example",
                "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://metrics.example/otlp",
            ]
        )
        #expect(settings.metricsEndpoint?.url == "https://metrics.example/otlp")
        #expect(settings.tracesEndpoint?.url == "https://all.example/v1/traces")
        let alone = try self.settings(nil, ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://traces.example/"])
        #expect(alone.metricsEndpoint == nil)
        #expect(alone.tracesEndpoint?.url == "https://traces.example/")
    }

    @Test("prefer the worker's own endpoint")
    func own() throws {
        let settings = try settings(
            "https://own.example/x",
            ["OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://metrics.example/"]
        )
        #expect(settings.metricsEndpoint?.url == "https://own.example/x/v1/metrics")
    }

    @Test(
        "can turn a signal off",
        arguments: [
            (["OTEL_SDK_DISABLED": "true"], false, false), (["OTEL_SDK_DISABLED": "false"], true, true),
            (["OTEL_TRACES_EXPORTER": "none"], true, false), (["OTEL_METRICS_EXPORTER": "prometheus"], false, true),
            (["OTEL_METRICS_EXPORTER": "console, otlp"], true, true),
        ]
    )
    func off(environment: [String: String], metrics: Bool, traces: Bool) throws {
        let settings = try settings("https://c.example", environment)
        #expect((settings.metricsEndpoint != nil) == metrics)
        #expect((settings.tracesEndpoint != nil) == traces)
    }

    @Test("read headers and attributes, percent-encoded")
    func pairs() throws {
        let settings = try settings(
            "https://c.example",
            [
                "OTEL_EXPORTER_OTLP_HEADERS": "api-key = a%2Cb=c , x-team=core,",
                "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=staging,team=caf%C3%A9",
                "OTEL_SERVICE_NAME": "tokens",
            ]
        )
        #expect(
            settings.headers == [
                CollectorHeader(name: "api-key", value: "a,b=c"), CollectorHeader(name: "x-team", value: "core"),
            ]
        )
        #expect(settings.resourceAttributes.last == Attribute("team", .text("café")))
        #expect(settings.serviceName == "tokens")
        #expect(settings.problems.isEmpty)
    }

    @Test(
        "report what cannot be used, without its value",
        arguments: [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318/hush"),
            ("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "hush"), ("OTEL_EXPORTER_OTLP_HEADERS", "hush"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "key=hush%2"), ("OTEL_EXPORTER_OTLP_HEADERS", "key=hush%0Ahush"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "ke y=hush"), ("OTEL_EXPORTER_OTLP_HEADERS", "key=hush%ff"),
            ("OTEL_RESOURCE_ATTRIBUTES", "=hush"), ("OTEL_METRIC_EXPORT_INTERVAL", "hush"),
            ("OTEL_METRIC_EXPORT_INTERVAL", "999"),
        ]
    )
    func problems(variable: String, value: String) throws {
        let isEndpoint = variable.hasSuffix("ENDPOINT")
        let settings = try settings(isEndpoint ? nil : "https://c.example", [variable: value])
        #expect(settings.problems.map(\.variable) == [variable])
        #expect(!"\(settings.problems)".contains("hush"))
        #expect(settings.headers.isEmpty && settings.resourceAttributes.isEmpty)
        #expect(settings.metricsInterval == .seconds(60))
    }

    @Test("never print the value of a header")
    func secret() throws {
        let settings = try settings("https://c.example", ["OTEL_EXPORTER_OTLP_HEADERS": "api-key=hush"])
        var dumped = ""
        dump(settings, to: &dumped)
        #expect(!"\(settings) \(String(reflecting: settings)) \(dumped)".contains("hush"))
        #expect(settings.headers.first?.value == "hush")
    }

    @Test("put given attributes before the worker's own")
    func resource() {
        let given = [Attribute("service.name", .text("given")), Attribute("service.version", .text("given"))]
        let named = Resource(serviceName: "named", given: given, version: "1", worker: "w")
        #expect(named.attributes.first == Attribute("service.name", .text("named")))
        #expect(named.attributes.contains(Attribute("service.version", .text("given"))))
        #expect(named.attributes.count == 3)
        let unnamed = Resource(serviceName: nil, given: given, version: "1", worker: "w")
        #expect(unnamed.attributes.first == Attribute("service.name", .text("given")))
        let usual = Resource(serviceName: nil, given: [], version: "1", worker: "w")
        #expect(usual.attributes.first == Attribute("service.name", .text("refresh-worker")))
    }
}
