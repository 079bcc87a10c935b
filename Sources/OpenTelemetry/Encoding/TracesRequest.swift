internal import Base
package import Telemetry

/// Spans as the body of a request to `/v1/traces`: an `ExportTraceServiceRequest` in JSON, in which ids are hexadecimal
/// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
package struct TracesRequest {
    /// The value of STATUS_CODE_ERROR. Without an error the status is left unset, as the conventions want it.
    private static let error = 2
    /// The flag of a sampled trace.
    private static let sampled = 1

    private let resource: Resource
    private let scopeVersion: String

    package init(resource: Resource, scopeVersion: String) {
        self.resource = resource
        self.scopeVersion = scopeVersion
    }

    package func encode(_ spans: [Span]) -> EncodedTelemetry {
        let body = resource.envelope(
            resources: "resourceSpans",
            scopes: "scopeSpans",
            scopeVersion: scopeVersion
        ) { line in
            line.objects("spans", spans) { write($0, to: &$1) }
        }
        return EncodedTelemetry(body: body, items: spans.count)
    }

    private func write(_ span: Span, to line: inout JSONLine) {
        line.field("traceId", span.traceID.text)
        line.field("spanId", span.id.text)
        line.field("parentSpanId", span.parentID.text)
        line.field("flags", Self.sampled)
        line.field("name", span.name)
        line.field("kind", span.kind.rawValue)
        line.instant("startTimeUnixNano", span.start)
        line.instant("endTimeUnixNano", span.start + span.duration)
        line.attributes(span.attributes.map { Attribute($0.name, .text($0.value)) })
        if span.hasFailed { line.object("status") { $0.field("code", Self.error) } }
    }
}
