/// A request with its result.
struct EndedRequest {
    let request: SubmittedRequest
    let result: Result<HTTPResponse, HTTPFailure>
    let cost: TransferCost
}
