"""Audits: what is done with one."""

from skfair.report import Audit, DataAudit


def written(audit, sample):
    audit.to_html()
    audit.to_markdown()
    return type(audit).from_dict(audit.to_dict())


USES = {Audit: written, DataAudit: written}
