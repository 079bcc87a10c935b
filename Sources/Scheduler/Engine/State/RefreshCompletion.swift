/// The end of a refresh, as reported to the callers that wait for it.
enum RefreshCompletion: Sendable {
    /// The result is committed.
    case committed(FinishedRefresh)
    /// Another worker has the grant, or it was not due any more.
    case handledElsewhere
    /// The lease was given back, or the store failed, before there was an answer.
    case abandoned
    /// A caller's refresh was not claimed, for this reason.
    case refused(VendReason)
}
