import Scheduler
import Storage
import Telemetry

/// The span of a request for a token, if its caller records its own.
extension TokenVendingHandler {
    func beginSpan() -> SpanBuffer.Open? { log.spans?.begin("vend", .server) }

    func end(
        _ span: SpanBuffer.Open?,
        of service: Service,
        audit: Audit,
        result: Result<VendedToken, ServiceError>
    ) {
        guard let span else { return }
        var attributes = [Span.Attribute("refresh_worker.service", service.name)]
        if let grant = audit.grant { attributes.append(Span.Attribute("refresh_worker.grant", grant.description)) }
        switch result {
        case .success(let token):
            attributes.append(Span.Attribute("refresh_worker.outcome", token.vendingOutcome))
            log.spans?.end(span, attributes: attributes)
        case .failure(let refusal):
            attributes.append(Span.Attribute("refresh_worker.outcome", refusal.code))
            log.spans?.end(span, attributes: attributes, hasFailed: true)
        }
    }
}
