"""Server-side apply over HTTP: PATCH with `application/apply-patch+yaml`, which also creates what is not there."""

from __future__ import annotations

from dataclasses import replace

from embedded.apiserver.admission.admitted_writes import AdmittedWrites
from embedded.apiserver.apimachinery import status
from embedded.apiserver.apimachinery.objects import Object
from embedded.apiserver.apimachinery.repeated_fields import repeated_fields
from embedded.apiserver.apimachinery.status import StatusError
from embedded.apiserver.handlers.write_options import write_options
from embedded.apiserver.managedfields import apply as ownership
from embedded.apiserver.managedfields.apply import ApplyRequest
from embedded.apiserver.managedfields.tracking import FieldWriter
from embedded.apiserver.registry.resources import WriteOptions
from embedded.apiserver.request.messages import Request, Response, answer
from embedded.apiserver.request.target import Target
from embedded.apiserver.request.worker_thread import in_worker_thread
from embedded.apiserver.serialization.request_body import body_object, check_named

_ATTEMPTS = 3  # where others create or delete the object while webhooks think


async def apply(writes: AdmittedWrites, target: Target, request: Request) -> Response:
    """Merge a configuration into the object, or create the object from it."""
    options = replace(write_options(request), applies=True)
    config = await in_worker_thread(len(request.body), lambda: _configuration(target, request, options))
    author = FieldWriter(options.manager, target.subresource, writes.resources.clock())
    application = ApplyRequest(target.rtype, config, author, request.flag("force"))
    for _ in range(_ATTEMPTS):
        try:
            return await _attempt(writes, target, application, options)
        except StatusError as error:
            lost = error
            if not _overtaken(writes, target, error):
                raise
    raise lost


async def _attempt(
    writes: AdmittedWrites, target: Target, application: ApplyRequest, options: WriteOptions
) -> Response:
    rtype, namespace, name = target.rtype, target.namespace, target.name
    if not target.subresource and writes.resources.find(rtype, namespace, name) is None:
        new = await writes.create(rtype, namespace, _newborn(target, application), options)
        return answer(new, 201, options.warnings)

    def change(live: Object) -> Object:
        return ownership.applied(application, live)

    obj = await writes.update(rtype, namespace, name, change, options, target.subresource)
    return answer(obj, 200, options.warnings)


def _overtaken(writes: AdmittedWrites, target: Target, error: StatusError) -> bool:
    """Whether the object has come or gone since the attempt began, so that the other way may do."""
    there = writes.resources.find(target.rtype, target.namespace, target.name) is not None
    return error.reason == "AlreadyExists" if there else error.reason == "NotFound" and not target.subresource


def _configuration(target: Target, request: Request, options: WriteOptions) -> Object:
    config = body_object(request)
    ownership.check(target.rtype, target.name, config)
    _check_repeated(config, options)
    return ownership.as_kept(target.rtype, ownership.confined(target.rtype, config, target.subresource))


def _check_repeated(config: Object, options: WriteOptions) -> None:
    told = list(repeated_fields(config))
    if told and options.field_validation == "Strict":
        raise status.bad_request(f"error strict decoding YAML: {', '.join(told)}")
    if options.field_validation != "Ignore":
        options.warnings.extend(told)


def _newborn(target: Target, application: ApplyRequest) -> Object:
    """A new object made of nothing but the configuration."""
    new = ownership.applied(application, {})
    meta = new["metadata"]
    check_named(new, target.rtype, target.namespace, target.name)
    meta.pop("resourceVersion", None)  # of what is not there, as kube-apiserver has it
    if meta.get("uid"):
        why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
        raise status.conflict(target.rtype, target.name, why)
    return new
